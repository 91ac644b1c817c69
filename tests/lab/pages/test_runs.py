import subprocess
import sys

import numpy as np
import pytest

from ebql.deep import DQN
from ebql.estimators.intervals import over_seeds
from ebql.lab.files.index import Index
from ebql.lab.pages.runs import View, changes, curves, differences

HOSTILE = "<img src=x onerror=alert(1)>"


def drawn(runs, metrics=("loss",), **view):
    return curves(runs, metrics, View(**view))


def test_curves_are_the_records_over_each_axis(tmp_path, write_log):
    records = [{"step": s, "loss": s / 10, "frames": 4 * s} for s in (10, 20, 30)]
    timing = [{"step": s, "seconds": 1800.0} for s in (10, 20, 30)]
    write_log("a", records, timing)
    runs = list(Index(tmp_path).runs.values())
    for axis, expected in (("steps", [10, 20, 30]), ("frames", [40, 80, 120]), ("time", [0.5, 1.0, 1.5])):
        told = drawn(runs, axis=axis)
        (line,) = told["charts"]["loss"]
        assert line["x"].tolist() == expected
        assert line["y"].tolist() == [1.0, 2.0, 3.0]
        assert line["label"] == "DQN, seed 0"
    assert told["read"] == 1.0
    assert told["axes"] == ["steps", "frames", "time"]
    assert drawn(runs, span=(19, 21))["charts"]["loss"][0]["x"].tolist() == [10, 20, 30]


def test_groups_have_student_bands_and_few_seeds_are_shown_one_by_one(tmp_path, write_log):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 3))
    for seed, row in enumerate(values):
        records = [{"step": 10 * (i + 1), "loss": float(x)} for i, x in enumerate(row)]
        write_log(f"many{seed}", records, options={"seed": seed})
        if seed < 2:
            write_log(f"few{seed}", records, agent="double-dqn", options={"seed": seed})
    lines = drawn(list(Index(tmp_path).runs.values()), group=True)["charts"]["loss"]
    few, many = sorted(lines, key=lambda line: line["label"], reverse=True)
    assert (few["label"], many["label"]) == ("DoubleDQN (2)", "DQN (5)")
    mean, half = over_seeds(values)
    np.testing.assert_allclose(many["y"], mean)
    np.testing.assert_allclose(many["high"], mean + half)
    np.testing.assert_allclose(few["y"], values[:2].mean(0))
    assert "low" not in few
    assert [one["y"].tolist() for one in few["seeds"]] == values[:2].tolist()


def test_means_over_seeds_of_long_and_unequal_runs_compare_the_same_steps(tmp_path, write_log):
    for seed, length in enumerate((1000, 1000, 1000, 900, 700)):
        records = [{"step": 1000 * (i + 1), "loss": float(seed)} for i in range(length)]
        write_log(f"run{seed}", records, options={"seed": seed})
    (line,) = drawn(list(Index(tmp_path).runs.values()), group=True)["charts"]["loss"]
    together = np.array(line["x"]) < 690_000
    np.testing.assert_allclose(np.array(line["y"])[together], 2.0)
    assert np.isfinite(line["low"])[together].all()


def test_curves_of_members_leave_out_agents_with_one(tmp_path, write_log):
    for name, agent, spread, agreement in (("a", "dqn", 0.0, 1.0), ("b", "ebql", 0.5, 0.75)):
        record = {"step": 10, "bias/mean": 1.0, "bias/spread": spread, "bias/agreement": agreement}
        write_log(name, [record], agent=agent)
    metrics = ["bias/mean", "bias/spread", "bias/agreement"]
    charts = drawn(list(Index(tmp_path).runs.values()), metrics)["charts"]
    lines = {metric: [(line["name"], *line["y"]) for line in charts[metric]] for metric in metrics}
    assert lines["bias/mean"] == [("DQN", 1.0), ("EBQL", 1.0)]
    assert lines["bias/spread"] == [("EBQL", 0.5)]
    assert lines["bias/agreement"] == [("EBQL", 0.75)]


def test_differences_between_two_configurations(tmp_path, write_log):
    write_log("a", [], options={"learning_rate": 0.1, "seed": 0})
    write_log("b", [], options={"learning_rate": 0.2, "seed": 0, "hidden": [64]})
    index = Index(tmp_path)
    rows = differences(index.run("a"), index.run("b"))["rows"]
    assert [row for row in rows if row[0] != "date"] == [
        ["learning_rate", "0.1", "0.2"],
        ["hidden", "—", "[64]"],
    ]


def test_only_changes_are_told():
    one, two = ({"id": name, "step": 1} for name in "ab")
    first = {"runs": [one, two], "refused": []}
    assert changes(None, first) == {**first, "gone": []}
    assert changes(first, first) is None
    later = {"runs": [{"id": "a", "step": 2}], "refused": []}
    assert changes(first, later) == {**later, "gone": ["b"]}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/api/runs/curves?runs=gone", "There is no run 'gone'"),
        ("/api/runs/curves", "Choose from 1 to 60 runs, not 0"),
        ("/api/runs/curves?runs=a&axis=years", "Unknown axis 'years'"),
        ("/api/runs/curves?runs=a&smooth=80", "smooth must be a number from 0 to 50"),
        ("/api/runs/differences?a=a&b=../a", "There is no run"),
        ("/films?run=a&name=../../secret.gif", "no film"),
        ("/films?run=a&name=config.json", "no film"),
    ],
)
def test_bad_requests_are_refused_in_words(client, write_log, path, line):
    write_log("a", [{"step": 1, "loss": 1.0}])
    refused = client.get(path)
    assert refused.status_code == 400
    assert line in refused.json()["error"]


def test_a_run_that_cannot_be_filmed_says_why(client, write_log):
    write_log("a", [{"step": 1, "loss": 1.0}])
    assert client.post("/api/films?run=gone").status_code == 400
    assert client.post("/api/films?run=a").json()["film"]["state"] == "filming"
    busy = client.post("/api/films?run=a")
    assert "Another film is being made" in busy.json()["error"]
    assert client.post("/api/films/cancel").status_code == 200
    for _ in range(200):
        state = client.get("/api/films").json()["film"]
        if state["state"] == "failed":
            break
    assert state["reason"] == "Cancelled."


def test_a_run_is_filmed_from_the_page_and_its_film_appears(visit, tmp_path):
    agent = DQN("CartPole-v1", learning_starts=64, batch_size=16, hidden=[8], threads=1, evaluation_period=0)
    agent.learn(80, out=tmp_path / "short")
    page = visit("/runs")
    page.get_by_role("button", name="Film this run").click()
    film = page.locator(".films img")
    visit.until(lambda: film.count() == 1)
    assert "DQN in CartPole-v1, short" in film.get_attribute("alt")
    film.scroll_into_view_if_needed()
    visit.until(lambda: film.evaluate("image => image.complete && image.naturalWidth") > 100)
    assert (tmp_path / "short" / "watch.gif").read_bytes()[:6] == b"GIF89a"
    page.get_by_role("button", name="Film this run").wait_for()  # it can be filmed again


def test_an_empty_folder_says_what_to_do_next(visit):
    page = visit("/runs")
    page.get_by_text("ebql train CartPole-v1").wait_for()


def test_a_hostile_label_is_shown_as_text(visit, write_log):
    write_log("x", [{"step": 10, "loss": 1.0}], label=HOSTILE, environment="<b>W</b>")
    page = visit("/runs")
    page.locator("td", has_text=HOSTILE).first.wait_for()
    page.locator('[data-metric="loss"] canvas').wait_for()
    assert page.locator("main img").count() == 0
    assert page.locator("main b").count() == 0


def test_two_runs_are_compared_and_the_view_is_in_the_address(visit, write_log):
    for seed in range(2):
        records = [{"step": s, "loss": s / 7, "extra": 1.0} for s in (10, 20)]
        write_log(f"run{seed}", records, options={"seed": seed, "learning_rate": 0.1 * seed})
    page = visit("/runs")
    page.locator('[data-metric="loss"] canvas').wait_for()
    page.get_by_role("button", name="Compare two").click()
    page.get_by_role("cell", name="0.1", exact=True).wait_for()
    page.get_by_label("Group over seeds").check()
    page.get_by_label("Add a chart").select_option("extra")
    page.locator('[data-metric="extra"] canvas').wait_for()
    visit.until(lambda: "group=1" in page.url)
    page.get_by_label("Filter runs").fill("nothing like this")
    page.get_by_text("No run matches the filter.").wait_for()
    assert page.get_by_role("row").count() >= 2


def test_a_real_run_is_watched_while_it_trains(visit, tmp_path):
    page = visit("/runs")
    page.get_by_text("There are no runs").wait_for()
    command = "import sys; from ebql.cli import main; sys.exit(main())"
    words = ["train", "CartPole-v1", "--agent", "dqn", "--steps", "3000", "--log-period", "100"]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *words, "--learning-starts", "200", "--out", str(tmp_path / "live")],
        stderr=subprocess.DEVNULL,
    )
    try:
        visit.until(lambda: process.poll() is not None or page.locator('tr[data-run="live"]').count())
        chart = page.locator('[data-metric="return"]')
        visit.until(lambda: chart.count() and int(chart.get_attribute("data-points")) >= 2)
        seen = int(chart.get_attribute("data-points"))
        visit.until(lambda: int(chart.get_attribute("data-points")) > seen)
        assert process.wait(120) == 0
        visit.until(lambda: page.locator(".state").first.inner_text() == "done")
    finally:
        process.kill()
        process.wait()


def test_an_address_out_of_range_is_told_in_words(visit, write_log):
    write_log("a", [{"step": 1, "loss": 1.0}])
    page = visit("/runs?run=gone&axis=years&smooth=80")
    page.get_by_text("There is no run “gone” below this folder.").wait_for()
    page.locator('[data-metric="loss"] canvas').wait_for()  # another run is shown instead
