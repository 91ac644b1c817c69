import pytest

from ebql.runs import output_folder
from ebql.studies.costs import speeds
from ebql.studies.definition import parse_study
from ebql.studies.plan import plan, run_folder

DEEP = """
agents = ["dqn", "double-dqn"]
environments = ["ebql/ProbeOneStep-v0", "ebql/ProbeDiscount-v0"]
seeds = [0, 1, 2]
steps = 100
preset = "plain"
hidden = [8]
learning_starts = 20
"""
TABLES = """
kind = "tabular"
agents = ["q-learning"]
environments = ["ebql/MetaChain-v0"]
seeds = 20
episodes = 50
"""


@pytest.fixture
def short_trials(monkeypatch):
    monkeypatch.setattr("ebql.studies.costs._TRIAL_SECONDS", 0.1)


def _with_timing(out, run, seconds):
    """Leave the timing of a run that took its first 60 steps in this many seconds."""
    folder = output_folder(run_folder(out, run))
    (folder / "timing.jsonl").write_text(f'{{"step": 60, "seconds": {seconds}}}\n')


def test_the_speed_comes_from_the_closest_measurement(tmp_path, short_trials):
    study = parse_study(DEEP, "the study")
    by_name = {run.name: run for run in study.runs}
    _with_timing(tmp_path, by_name["ebql-ProbeOneStep-v0_dqn_0"], 2.0)
    _with_timing(tmp_path, by_name["ebql-ProbeOneStep-v0_dqn_1"], 6.0)
    found = speeds(plan(study, tmp_path))
    # 120 steps in 8 seconds: the mean over time, not over runs.
    assert found["ebql-ProbeOneStep-v0_dqn_2"] == (pytest.approx(15), "runs of this study")
    in_similar = (pytest.approx(15), "runs of this study in similar environments")
    assert found["ebql-ProbeDiscount-v0_dqn_1"] == in_similar
    trial = found["ebql-ProbeOneStep-v0_double-dqn_0"]
    assert trial.per_second > 0
    assert trial.source == "a trial of 0 s here, without evaluations"
    assert found["ebql-ProbeDiscount-v0_double-dqn_2"] == trial  # one trial for the family


def test_a_trial_of_tables_counts_seeds_and_writes_nothing(tmp_path, short_trials):
    study = parse_study(TABLES, "the study")
    (found,) = speeds(plan(study, tmp_path)).values()
    assert found.per_second > 0
    assert found.source == "a trial of 0 s here"
    assert not list(tmp_path.iterdir())
