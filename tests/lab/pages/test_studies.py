import pytest

from ebql.analysis.findings import findings
from ebql.analysis.scores import read_scores
from ebql.lab.files.index import Index
from ebql.lab.pages.studies import studies, study
from ebql.report.study.words import headline


@pytest.fixture
def write_study(write_run):
    def write(name, seeds):
        for seed in range(seeds):
            write_run(f"{name}/d{seed}", [1, 2, 3 + seed / 10], seed=seed)
            write_run(f"{name}/e{seed}", [1, 5, 9 + seed / 10], seed=seed, agent="ebql", ensemble_size=5)

    return write


def test_the_words_and_numbers_are_the_reports(tmp_path, write_study):
    write_study("many", 5)
    scored = read_scores(tmp_path / "many")
    found = findings(scored)
    told = study(Index(tmp_path), "many")
    assert told["headline"] == headline(scored, found).sentence
    assert told["sure"]
    best = told["agents"][0]
    assert best["name"] == found.best == "EBQL K=5"
    iqm = found.aggregates["EBQL K=5"]["IQM"]
    assert best["iqm"] == {"value": iqm.value, "low": iqm.low, "high": iqm.high}
    assert len(best["scores"]) == 5
    ((environment),) = told["environments"]
    runs = environment["agents"][0]["runs"]
    assert [run["id"] for run in runs] == [f"many/d{seed}" for seed in range(5)]
    assert [run["score"] for run in runs] == pytest.approx([3, 3.1, 3.2, 3.3, 3.4])


def test_below_five_seeds_there_are_no_intervals(tmp_path, write_study):
    write_study("few", 2)
    told = study(Index(tmp_path), "few")
    assert told["few"]
    assert not told["sure"]
    assert all(agent["iqm"]["low"] is None for agent in told["agents"])
    assert all(row["half_width"] is None for row in told["environments"][0]["agents"])


def test_studies_are_listed_and_only_they_are_read(tmp_path, client, write_study):
    assert client.get("/api/studies").json()["studies"] == []
    write_study("a", 2)
    assert studies(Index(tmp_path))["studies"] == [{"id": "a", "runs": 4}]
    for name in ("..", "gone", "/etc", "a/../.."):
        refused = client.get("/api/studies/one", params={"study": name})
        assert refused.status_code == 400
        assert "There is no study" in refused.json()["error"]


def test_an_empty_folder_says_what_to_do_next(visit):
    visit("/studies").get_by_text("ebql sweep study.toml").wait_for()


def test_the_page_sorts_filters_and_leads_to_the_runs(visit, write_study):
    write_study("many", 5)
    page = visit("/studies")
    page.locator(".headline").wait_for()
    assert "EBQL K=5 is the best agent" in page.locator(".headline").inner_text()
    agents = page.locator(".ranking tbody tr")
    assert [row.get_attribute("data-agent") for row in agents.all()] == ["EBQL K=5", "DQN"]
    page.get_by_role("button", name="Agent", exact=True).click()
    assert [row.get_attribute("data-agent") for row in agents.all()] == ["DQN", "EBQL K=5"]
    page.get_by_label("Filter agents").fill("ebql")
    assert agents.count() == 1
    page.get_by_role("link", name="curves").first.click()
    page.locator('[data-metric="evaluation/return"] canvas').wait_for()


def test_few_seeds_are_dots_alone(visit, write_study):
    write_study("few", 3)
    page = visit("/studies")
    page.locator(".run-dot").first.wait_for()
    assert page.locator(".run-dot").count() == 6
    assert page.locator(".interval").count() == 0
    assert "Three seeds per agent cannot rank these agents" in page.locator(".headline").inner_text()


def test_hostile_labels_and_folders_are_shown_as_text(visit, write_run):
    hostile = "<img src=x onerror=alert(1)>"
    for seed in range(2):
        write_run(f"<b>study</b>/d{seed}", [1, 2, 3], seed=seed, label=hostile, environment="<i>W</i>")
    page = visit("/studies")
    page.locator("tr", has_text=hostile).first.wait_for()
    page.get_by_role("button", name="<b>study</b> (2)").wait_for()
    assert page.locator("main img, main b, main i").count() == 0
