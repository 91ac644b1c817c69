import csv
import json
from html.parser import HTMLParser

import pytest

from ebql.analysis.scores import read_scores
from ebql.errors import OutputError
from ebql.report.study.report import StudyReport

PICTURES = {"summary", "aggregates", "improvement", "profiles", "curves", "bias", "bias-score"}
TABLES = {"runs", "curves", "scales", "comparisons", "profiles"}


class Page(HTMLParser):
    """Collects a page's tags and its text, and checks that they are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.sources, self.text = [], [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def reported(tmp_path):
    return Page(
        StudyReport(read_scores(tmp_path / "study"), "A <study>", tmp_path / "out").write().read_text()
    )


def rows(tmp_path, name):
    with (tmp_path / "out" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def some_study(write_run, seeds=5):
    for environment in ("A-v0", "B-v0"):
        for seed in range(seeds):
            at = f"study/{environment}-{seed}"
            write_run(f"{at}-d", [1, 2, 3 + seed], seed=seed, environment=environment, n_step=1)
            write_run(
                f"{at}-e",
                [2, 3, 4 + seed],
                seed=seed,
                environment=environment,
                agent="ebql",
                ensemble_size=5,
                n_step=3,
            )


def test_one_page_with_everything_and_all_of_it_beside(write_run, tmp_path):
    some_study(write_run)
    page = reported(tmp_path)
    assert page.tags.count("img") == len(PICTURES)
    # Nothing is fetched: pictures are in the page, links lead to its own sections.
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in page.sources)
    assert "script" not in page.tags
    assert "A <study>" in page.text
    assert "No clear winner over 2 environments: EBQL K=5 leads DQN" in page.text
    for told in ("All options of EBQL K=5", "numpy", "20 runs: 2 agents, 2 environments, 5 seeds each"):
        assert told in page.text
    assert page.text.index("Options that differ") < page.text.index("n_step") < page.text.index("All options")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"report.html", *(f"{p}.png" for p in PICTURES), *(f"{t}.csv" for t in TABLES)}

    runs = rows(tmp_path, "runs")
    assert len(runs) == 20
    assert (runs[0]["agent"], runs[0]["score"], runs[0]["relative_bias"]) == ("DQN", "3", "")
    lead = next(row for row in rows(tmp_path, "comparisons") if row["quantity"] == "IQM difference")
    assert (lead["agent"], lead["other"], float(lead["value"])) == ("EBQL K=5", "DQN", pytest.approx(1 / 3))
    assert [row["compared"] for row in rows(tmp_path, "scales")] == ["True", "True"]


def test_an_agent_that_learns_faster_is_ahead_in_the_score_averaged_over_training(write_run, tmp_path):
    slow, fast = [0] * 15 + [6] * 5, [0] * 5 + [6] * 15
    for seed in range(5):
        write_run(f"study/slow-{seed}", slow, seed=seed)
        write_run(f"study/fast-{seed}", fast, seed=seed, agent="double-dqn")
    table = reported(tmp_path).text.partition("Difference from DQN, paired by seed")[2]
    assert table.lstrip().startswith(
        "environmentagentscorescore averaged over trainingbias"
        "W-v0DoubleDQN+0.00 [+0.00, +0.00]+3.00 [+3.00, +3.00]"
    )


def test_few_seeds_show_every_run_and_no_interval_or_probability(write_run, tmp_path):
    some_study(write_run, seeds=2)
    page = reported(tmp_path)
    assert "Two seeds per agent cannot rank these agents: run at least five" in page.text
    assert "Intervals and probabilities are not shown with fewer than 5 seeds." in page.text
    # Normalised: 3 is 0, EBQL's mean of 4.5 is 1; four runs of each over both environments.
    assert "0.33 (0.00, 0.67, 0.00, 0.67)" in page.text
    assert "1.00 (0.67, 1.33, 0.67, 1.33)" in page.text
    assert "3.5 (3, 4)" in page.text
    assert "4.5 (4, 5)" in page.text
    for judged in (
        "95%",
        "±",
        "IQM",
        "P(best",
        "best agent is",
        "beats a run",
        "ρ",
        "p =",
        "the best agent over",
        "leads",
    ):
        assert judged not in page.text, judged
    pictures = {"summary", "curves", "bias", "bias-score"}
    assert page.tags.count("img") == len(pictures)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"report.html", *(f"{p}.png" for p in pictures), *(f"{t}.csv" for t in TABLES)}


def test_few_seeds_keep_the_columns_of_tables_and_leave_cells_empty(write_run, tmp_path):
    some_study(write_run, seeds=4)
    reported(tmp_path)
    for name, known in (("comparisons", "value"), ("profiles", "share"), ("curves", "mean")):
        found = rows(tmp_path, name)
        assert {(row["low"], row["high"]) for row in found} == {("", "")}
        guessed = [row for row in found if row.get("quantity") == "probability of improvement"]
        assert all(row[known] for row in found if row not in guessed)
    (one, other) = (row for row in rows(tmp_path, "comparisons") if row["quantity"].startswith("probability"))
    assert one["value"] == other["value"] == ""


def test_an_environment_with_few_seeds_lists_them_beside_one_with_intervals(write_run, tmp_path):
    some_study(write_run)
    for agent in ("dqn", "double-dqn"):  # not compared: EBQL has no run there
        for seed, last in enumerate((-7, -9)):
            write_run(f"study/c{agent}{seed}", [-9, -9, last], seed=seed, agent=agent, environment="C-v0")
    for environment in ("A-v0", "B-v0"):
        for seed in range(5):
            write_run(
                f"study/x{environment}{seed}",
                [1, 2, 3],
                seed=seed,
                agent="double-dqn",
                environment=environment,
            )
    page = reported(tmp_path)
    assert "5 ± 1.96 (5)" in page.text  # DQN's 3 to 7, in A-v0 and B-v0
    assert page.text.count("−8 (−7, −9)") == 2
    assert "mean ± half-width of Student's 95% interval" in page.text
    assert "where an agent has fewer than 5 seeds" in page.text


def test_one_seed_one_environment_no_bias_and_an_unfinished_run(write_run, tmp_path):
    write_run("study/d", [1, 2, 3], biases=[None] * 3)
    write_run("study/e", [2, 3], agent="double-dqn", biases=[None] * 3)
    page = reported(tmp_path)
    assert "One seed per agent cannot rank these agents" in page.text
    assert "Intervals and probabilities are not shown" in page.text
    assert "No run has measured its bias. “ebql evaluate RUN” measures" in page.text
    assert "Unfinished: 1 of 2" in page.text
    assert "unknown" in page.text


def test_states_that_were_dropped_and_biases_that_are_bootstrapped_are_noted(write_run, tmp_path, edit_log):
    log = write_run("study/d", [1, 2, 3], biases=[None] * 3) / "metrics.jsonl"
    edit_log(log, '"bias/mean"', '"bias/dropped": 7, "bias/mean"')
    page = reported(tmp_path)
    assert "all 21 evaluated states were dropped" in page.text
    assert "“ebql evaluate RUN” measures the bias" in page.text
    log = write_run("study/e", [1, 2, 3], agent="double-dqn") / "metrics.jsonl"
    edit_log(log, '"bias/mean"', '"bias/method": "bootstrapped", "bias/mean"')
    page = reported(tmp_path)
    assert "all 21 evaluated states were dropped" in page.text
    assert "which draws these biases towards 0" in page.text


def test_agents_that_share_no_environment_still_have_their_curves(write_run, tmp_path):
    write_run("study/d", [1, 2, 3], environment="A-v0")
    write_run("study/e", [2, 3, 4], agent="double-dqn", environment="B-v0")
    page = reported(tmp_path)
    assert "No comparison yet" in page.text
    assert page.tags.count("img") == 2


def test_relative_bias_speed_and_memory_are_shown_if_known(write_run, tmp_path, edit_log):
    for agent, bias in (("dqn", 0.8), ("double-dqn", -0.1)):
        for seed in range(5):
            path = write_run(f"study/{agent}{seed}", [1, 2, 3 + seed], agent=agent, seed=seed)
            log = path / "metrics.jsonl"
            edit_log(log, '"bias/mean"', f'"bias/normalised": {bias}, "bias/mean"')
            timing = {"step": 1234, "seconds": 1.0, "peak_memory_bytes": 77 << 20}
            (path / "timing.jsonl").write_text(json.dumps(timing) + "\n")
    page = reported(tmp_path)
    assert "DoubleDQN is least biased: −0.10" in page.text
    assert "1,234" in page.text
    assert "77" in page.text


def test_a_folder_that_cannot_be_written_is_told_first(write_run, tmp_path):
    some_study(write_run, seeds=1)
    (tmp_path / "out").write_text("a file")
    with pytest.raises(OutputError, match="Cannot write"):
        reported(tmp_path)


def test_spread_and_agreement_of_ensembles_are_drawn_and_kept(write_run, tmp_path, edit_log):
    for agent, spread, agreement in (("dqn", 0.0, 1.0), ("ebql", 0.5, 0.75)):
        log = write_run(f"study/{agent}", [1, 2, 3], agent=agent) / "metrics.jsonl"
        members = f'"bias/spread": {spread}, "bias/agreement": {agreement}, "bias/mean"'
        edit_log(log, '"bias/mean"', members)
    page = reported(tmp_path)
    assert "Do the members of an ensemble agree?" in page.text
    for picture in ("spread", "agreement"):
        assert (tmp_path / "out" / f"{picture}.png").exists()
    kept = {(row["agent"], row["metric"], row["mean"]) for row in rows(tmp_path, "curves")}
    assert ("EBQL", "bias/spread", "0.5") in kept
    assert ("EBQL", "bias/agreement", "0.75") in kept
