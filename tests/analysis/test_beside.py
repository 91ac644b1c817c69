import numpy as np
import pytest

from ebql.analysis.beside import beside_kept
from ebql.analysis.keeping import keep
from ebql.analysis.runs import kept_runs
from ebql.analysis.scores import read_scores


@pytest.fixture
def kept(write_run, tmp_path):
    for seed in range(5):
        write_run(f"ours/d{seed}", [1, 2, 3 + seed], seed=seed)
        write_run(f"ours/e{seed}", [1, 2, 9], seed=seed, agent="ebql", ensemble_size=5)
        write_run(f"ours/t{seed}", [1, 2, 8], seed=seed, agent="ebql", ensemble_size=10)
    keep(tmp_path / "ours", tmp_path / "kept")
    return kept_runs(tmp_path / "kept")


def test_few_runs_have_a_difference_without_an_interval(kept, write_run, tmp_path):
    write_run("mine/d0", [1, 2, 3])
    write_run("mine/d9", [1, 2, 10], seed=9)
    (item,) = beside_kept(read_scores(tmp_path / "mine"), kept)
    assert (item.environment, item.agent) == ("W-v0", "DQN")
    assert [run.score for run in item.your_scores] == [3, 10]
    assert [run.score for run in item.kept_scores] == [3, 4, 5, 6, 7]
    assert item.difference.value == 1.5
    assert np.isnan(item.difference.low)
    assert item.marks == ["seeds 0, 9 (kept: 0 to 4)", "equal to nine digits on 1 of 1 shared seeds"]


def test_many_runs_have_an_interval(kept, write_run, tmp_path):
    for seed in range(5):
        write_run(f"mine/d{seed}", [1, 2, 4 + seed], seed=seed)
    (item,) = beside_kept(read_scores(tmp_path / "mine"), kept)
    assert item.difference.value == 1
    # Welch: both standard errors are √(2.5 / 5), 8 degrees of freedom.
    assert item.difference.high - 1 == pytest.approx(2.306004)
    assert item.marks == ["equal to nine digits on 0 of 5 shared seeds"]


def test_the_nearest_options_are_chosen_and_differences_marked(kept, write_run, edit_log, tmp_path):
    path = write_run("mine/e0", [1, 2, 3], agent="ebql", ensemble_size=10, discount=0.5)
    assert path.exists()
    (item,) = beside_kept(read_scores(tmp_path / "mine"), kept)
    assert [run.score for run in item.kept_scores] == [8] * 5
    assert item.marks[0] == "discount 0.5 (kept: 0.99)"


@pytest.mark.parametrize(
    "change", [{"environment": "V-v0"}, {"steps": 20}, {"agent": "double-dqn"}, {"steps": 40}]
)
def test_another_protocol_or_an_unfinished_run_has_nothing_beside_it(kept, write_run, tmp_path, change):
    write_run("mine/d0", [1, 2, 3], **change)
    assert beside_kept(read_scores(tmp_path / "mine"), kept) == []


def test_kept_results_have_nothing_beside_themselves(kept, tmp_path):
    assert beside_kept(read_scores(tmp_path / "kept"), kept) == []
