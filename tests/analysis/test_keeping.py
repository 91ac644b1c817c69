import shutil

import pytest

from ebql.analysis.keeping import Tally, keep, without_folders
from ebql.analysis.scores import read_scores
from ebql.errors import InputError
from ebql.kept.files import holds_kept, read_kept
from ebql.runs.locking import exclusive


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def study(write_run, tmp_path):
    write_run("study/d0", [1, 2, 3])
    write_run("study/d1", [2, 2, 4], seed=1)
    write_run("study/e0", [1, 5, 6], agent="ebql", ensemble_size=5, label="EBQL 5")
    return tmp_path / "study"


def test_finished_runs_are_kept_and_repeating_it_changes_nothing(study, write_run, tmp_path):
    write_run("study/d2", [1, 2], seed=2)  # unfinished
    out = tmp_path / "kept"
    assert keep(study, out) == Tally(3, 0, 1, 3)
    before = contents(out)
    assert keep(study, out) == Tally(0, 3, 1, 3)
    assert contents(out) == before
    agents = [(run.agent, run.name, run.seed, run.steps) for run in read_kept(out)]
    assert agents == [("DQN", "dqn", 0, 30), ("DQN", "dqn", 1, 30), ("EBQL 5", "ebql", 0, 30)]


def test_runs_of_two_machines_are_merged(study, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    shutil.copytree(study / "d0", one / "d0")
    shutil.copytree(study, other)
    shutil.rmtree(other / "d0")
    for source, out in ((study, "whole"), (one, "parts"), (other, "parts"), (one, "first")):
        keep(source, tmp_path / out)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    keep(tmp_path / "parts", tmp_path / "first")  # kept results can be kept, too
    assert contents(tmp_path / "first") == contents(tmp_path / "whole")


def test_kept_results_are_scored_like_the_runs(study, tmp_path):
    keep(study, tmp_path / "kept")
    of_runs, of_tables = read_scores(study), read_scores(tmp_path / "kept")
    assert of_tables.scored == of_runs.scored
    assert of_tables.horizons == of_runs.horizons
    assert of_tables.references == of_runs.references
    assert of_tables.unfinished == 0


def test_random_play_is_kept_as_the_zero_of_the_scale(write_run, edit_log, tmp_path):
    path = write_run("study/d0", [1, 2, 3])
    edit_log(path / "metrics.jsonl", '"loss": 0.5', '"loss": 0.5, "return": 0.25, "epsilon": 0.95')
    keep(tmp_path / "study", tmp_path / "kept")
    assert read_scores(tmp_path / "kept").references == read_scores(tmp_path / "study").references
    assert read_scores(tmp_path / "kept").references["W-v0"].zero == 0.25


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"returns": [1, 2, 3.5]}, "kept with bias/mean 3 at step 30, here it is 3.5"),
        ({"discount": 0.5}, "kept with discount = 0.99, here it is 0.5"),
        ({"steps": 20}, "kept with 30 steps, here it has 20"),
        ({"agent": "double-dqn", "label": "DQN"}, "kept with the agent dqn, here it is double-dqn"),
        ({"returns": [1, 2, 3, 3]}, "kept with 3 evaluations, here 4"),
    ],
)
def test_a_run_that_contradicts_a_kept_one_is_refused(study, write_run, tmp_path, changes, told):
    keep(study, tmp_path / "kept")
    before = contents(tmp_path / "kept")
    write_run("new/d7", [1, 2, 3], seed=7)
    write_run("new/d0", **{"returns": [1, 2, 3], **changes})
    with pytest.raises(InputError) as refusal:
        keep(tmp_path / "new", tmp_path / "kept")
    assert str(refusal.value).startswith("W-v0, DQN, seed 0 is ")
    assert told in str(refusal.value)
    assert contents(tmp_path / "kept") == before  # not even the run that fits


def test_the_number_of_threads_is_no_contradiction(study, write_run, tmp_path):
    keep(study, tmp_path / "kept")
    write_run("new/d0", [1, 2, 3], threads=2)
    assert keep(tmp_path / "new", tmp_path / "kept").already == 1


def test_runs_changed_by_hand_are_refused(study, tmp_path):
    log = study / "d0" / "metrics.jsonl"
    log.write_text(log.read_text().replace('"evaluation/return": 3', '"evaluation/return": 9'))
    with pytest.raises(InputError, match="changed"):
        keep(study, tmp_path / "kept")


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("ebql sweep a.toml --kept results/a --out /home/me/a --workers 2",
         "ebql sweep a.toml --kept results/a --out a --workers 2"),
        ("ebql train ALE/Pong-v5 --out '/home/my runs/pong'", "ebql train ALE/Pong-v5 --out pong"),
        ("ebql train CartPole-v1 --out=/home/me/pole", "ebql train CartPole-v1 --out=pole"),
        ("ebql train it's", "ebql train it's"),
        ("", ""),
    ],
)  # fmt: skip
def test_folders_of_the_machine_are_not_kept(command, kept):
    assert without_folders(command) == kept


def test_nothing_to_keep_leaves_no_folder(write_run, tmp_path):
    write_run("study/d0", [1, 2])
    assert keep(tmp_path / "study", tmp_path / "kept") == Tally(0, 0, 1, 0)
    assert not (tmp_path / "kept").exists()


def test_two_processes_do_not_write_at_the_same_time(study, tmp_path, monkeypatch):
    monkeypatch.setattr("ebql.analysis.keeping._PATIENCE", 0.0)
    (tmp_path / "kept").mkdir()
    with (
        exclusive(tmp_path / "kept" / ".lock", "taken"),
        pytest.raises(InputError, match="Another process writes to"),
    ):
        keep(study, tmp_path / "kept")
    assert not holds_kept(tmp_path / "kept")
