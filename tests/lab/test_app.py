import pytest

from ebql.lab.app import PAGES, STATIC


@pytest.mark.parametrize("path", [page.path for page in PAGES])
def test_every_page_has_its_frame_and_its_script(client, path):
    answer = client.get(f"/{path}")
    assert answer.status_code == 200
    assert f'<a href="/{path}" aria-current=page>' in answer.text
    assert client.get(f"/static/js/{path}.js").status_code == 200
    assert "$" not in answer.text


def test_the_start_leads_to_a_page(client):
    assert client.get("/", follow_redirects=True).status_code == 200


@pytest.mark.parametrize(
    "path", ["/nowhere", "/static/../app.py", "/static/%2e%2e/app.py", "/static/../../errors.py"]
)
def test_what_is_not_there_is_told_in_words(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text
    assert "import" not in answer.text


def test_scripts_never_set_html_and_name_no_other_host():
    for script in STATIC.rglob("js/*.js"):
        text = script.read_text()
        assert "innerHTML" not in text, script
        assert "insertAdjacentHTML" not in text, script
        assert "eval(" not in text, script
        assert "https://" not in text, script
        assert len(text.splitlines()) < 300, script


def test_the_charting_library_is_shipped_with_its_licence():
    assert "MIT" in (STATIC / "uplot" / "LICENSE").read_text()
    assert "uPlot" in (STATIC / "uplot" / "uPlot.esm.js").read_text()[:200]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_a_phone_in_both_themes_and_the_theme_can_be_switched(visit, theme):
    for page in PAGES:
        opened = visit(f"/{page.path}")
        opened.emulate_media(color_scheme=theme)
        opened.set_viewport_size({"width": 390, "height": 800})
        opened.get_by_role("heading", level=1).wait_for()
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390, page.path
    paper = "getComputedStyle(document.body).backgroundColor"
    before = opened.evaluate(paper)
    opened.get_by_role("button", name="Switch between").click()
    assert opened.evaluate(paper) != before


NAMELESS = """() => {
  const kinds = "input, select, textarea, button, a[href], progress, [role=img], img, svg";
  const label = (node) => node.labels?.[0]?.textContent;
  const names = (node) => [node.getAttribute("aria-label"), label(node), node.textContent, node.alt];
  return [...document.querySelectorAll(kinds)].filter((node) => !node.closest("[aria-hidden=true]"))
    .filter((node) => !names(node).some((name) => name?.trim())).map((node) => node.outerHTML.slice(0, 120));
}"""


def test_everything_has_a_name_for_screen_readers_and_each_page_one_title(visit, write_run):
    for seed in range(2):
        write_run(f"study/d{seed}", [1, 2, 3 + seed], seed=seed)
    shown = {"runs": "canvas", "studies": ".run-dot", "agents": ".method", "estimators": "#rules .strip"}
    for page in PAGES:
        opened = visit(f"/{page.path}")
        opened.locator(shown.get(page.path, "h1")).first.wait_for()
        assert opened.get_by_role("heading", level=1).count() == 1
        assert opened.evaluate(NAMELESS) == [], page.path
        ids = opened.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
        assert len(ids) == len(set(ids)), page.path


def test_pages_can_be_used_with_the_keyboard_alone(visit, write_run):
    for seed in range(2):
        write_run(f"study/d{seed}", [1, 2, 3 + seed], seed=seed)
    page = visit("/runs")
    page.locator("tr[data-run]").nth(1).wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("d1")
    visit.until(lambda: page.locator("tr[data-run]").count() == 1)
    page.get_by_role("checkbox", name="Show DQN").focus()
    page.keyboard.press("Space")
    visit.until(lambda: page.get_by_role("checkbox", name="Show DQN").evaluate("box => !box.checked"))
    # The list is drawn again, and the same box keeps the focus.
    assert page.evaluate("document.activeElement.closest('tr').dataset.run") == "study/d1"
    page.get_by_role("button", name="Seed").focus()
    page.keyboard.press("Enter")
    visit.until(lambda: page.locator("#runs th", has_text="Seed").get_attribute("aria-sort") == "ascending")
    assert page.evaluate("document.activeElement.textContent") == "Seed"


def test_a_lab_that_has_stopped_is_told_in_words(chromium, serve_lab, write_run, tmp_path):
    write_run("d", [1, 2, 3])
    with serve_lab(tmp_path) as address:
        page = chromium.new_page()
        page.goto(f"{address.url}runs")
        page.locator("canvas").first.wait_for()
    page.get_by_text("The lab does not answer. Is `ebql lab` still running?").wait_for()
    page.close()


def test_with_a_token_the_pages_work_in_a_browser(chromium, serve_lab, write_run, tmp_path):
    write_run("d", [1, 2, 3])
    with serve_lab(tmp_path, host="127.0.0.1") as address:
        page = chromium.new_page()
        page.goto(address.url.partition("?")[0])
        assert "token" in page.inner_text("body")
        page.goto(address.url)
        page.locator("canvas").first.wait_for()  # the list came as a stream, the curves as an answer
        assert "token" not in page.url
        page.close()
