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
