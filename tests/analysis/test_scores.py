import json
import shutil

import numpy as np
import pytest

from ebql.analysis.references import Reference
from ebql.analysis.scores import IN_CLIPPED_REWARDS, RELATIVE, read_scores, score
from ebql.errors import InputError


def write_timing(path, *records):
    (path / "timing.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def ebql(write_run, name, returns, **more):
    return write_run(name, returns, agent="ebql", ensemble_size=5, **more)


def test_a_score_is_the_mean_of_the_last_tenth(write_run, tmp_path):
    # Steps 10 to 200: above 180 lie 190 and 200.
    write_run("a", [0] * 17 + [99, 4, 8], steps=200, biases=[0] * 18 + [1, None])
    (run,) = read_scores(tmp_path).scored
    assert (run.environment, run.agent, run.seed, run.step, run.evaluations) == ("W-v0", "DQN", 0, 200, 2)
    assert (run.score, run.bias) == (6, 1)
    assert np.isnan(run.relative_bias)
    assert (run.last_score, run.bias_before) == (8, 1)
    assert run.throughout == pytest.approx((99 + 4 + 8) / 20)


def test_agents_are_scored_at_the_last_step_that_each_has_reached(write_run, tmp_path):
    write_run("d0", [1, 2, 3])
    write_run("d1", [4], seed=1)
    ebql(write_run, "e0", [5, 6])
    study = read_scores(tmp_path)
    assert study.horizons == {"W-v0": 20}
    assert [(run.agent, run.seed, run.score) for run in study.scored] == [("DQN", 0, 2), ("EBQL K=5", 0, 6)]
    assert study.unfinished == 2


def test_what_comes_after_the_horizon_does_not_count_throughout(write_run, tmp_path):
    write_run("d0", [1, 2, 60])
    write_run("d1", [0, 0, 0], seed=1)
    ebql(write_run, "e0", [5, 7])
    study = read_scores(tmp_path)
    by_agent = {(run.agent, run.seed): run for run in study.scored}
    assert by_agent["DQN", 0].throughout == 1.5
    (scale,) = study.references.values()
    fast = by_agent["EBQL K=5", 0]
    assert fast.throughout == 6
    assert fast.normalised_throughout == pytest.approx(scale.normalised(6)) != fast.normalised


def test_steps_a_little_apart_are_one_horizon(write_run, edit_log, tmp_path):
    write_run("d0", [1, 2], period=1000, steps=2000)
    late = ebql(write_run, "e0", [3, 4], period=1000, steps=2000)
    edit_log(late / "metrics.jsonl", '"step": 2000', '"step": 2007')
    assert [run.score for run in read_scores(tmp_path).scored] == [2, 4]


def test_agents_evaluated_more_rarely_are_scored_by_their_last_evaluation_before(write_run, tmp_path):
    write_run("d0", [1] * 27, steps=1000, period=10)
    ebql(write_run, "e0", [5, 6, 7], steps=1000, period=100)
    study = read_scores(tmp_path)
    assert study.horizons == {"W-v0": 270}
    assert [(run.step, run.evaluations, run.score) for run in study.scored] == [(270, 3, 1), (200, 1, 6)]


def test_environments_that_all_have_finished_are_compared(write_run, tmp_path):
    for environment, returns in (("A", [1, 1, 1]), ("B", [2, 3])):
        write_run(f"d{environment}", returns, environment=environment)
        ebql(write_run, f"e{environment}", [x + 1 for x in returns], environment=environment)
    write_run("dC", [1], environment="C")
    study = read_scores(tmp_path)
    assert study.compared == ["A"]
    assert study.contenders == ["DQN", "EBQL K=5"]
    assert [own.tolist() for own in study.scores("EBQL K=5")] == [[1.0]]


def test_seeds_are_counted_where_agents_are_compared(write_run, tmp_path):
    for seed in range(5):
        write_run(f"d{seed}", [1, 1, 1], seed=seed, environment="A")
        ebql(write_run, f"e{seed}", [2, 2, 2], seed=seed, environment="A")
    write_run("lone", [1, 1, 1], environment="B")
    study = read_scores(tmp_path)
    assert study.compared_seeds == (5, 5)
    assert not study.has_few_seeds
    write_run("d5", [1, 1, 1], seed=5, environment="A")
    shutil.rmtree(tmp_path / "e4")
    study = read_scores(tmp_path)
    assert study.compared_seeds == (4, 6)
    assert study.has_few_seeds


def test_seeds_of_agents_that_are_not_compared_do_not_count(write_run, tmp_path):
    for seed in range(5):
        for environment in "AB":
            write_run(f"d{environment}{seed}", [1, 1, 1], seed=seed, environment=environment)
            write_run(
                f"dd{environment}{seed}", [2, 2, 2], seed=seed, environment=environment, agent="double-dqn"
            )
    ebql(write_run, "e", [3, 3, 3], environment="A")
    write_run("m", [3, 3, 3], environment="B", agent="maxmin", ensemble_size=5)
    study = read_scores(tmp_path)
    assert study.contenders == ["DQN", "DoubleDQN"]
    assert not study.has_few_seeds


def test_while_none_has_finished_those_are_compared_that_all_have_begun(write_run, tmp_path):
    write_run("d", [2, 3])
    ebql(write_run, "e", [5])
    study = read_scores(tmp_path)
    assert study.compared == ["W-v0"]
    assert study.horizons["W-v0"] == 10


def test_if_no_environment_has_all_agents_those_in_all_environments_are_compared(write_run, tmp_path):
    for environment, size in (("A", 5), ("B", 10)):
        write_run(f"d{environment}", [1], environment=environment)
        write_run(f"dd{environment}", [2], environment=environment, agent="double-dqn")
        write_run(f"e{environment}", [3], environment=environment, agent="ebql", ensemble_size=size)
    study = read_scores(tmp_path)
    assert study.compared == ["A", "B"]
    assert study.contenders == ["DQN", "DoubleDQN"]


def test_agents_that_share_nothing_are_not_compared(write_run, tmp_path):
    write_run("d", [1, 2], environment="A")
    write_run("d1", [2, 1], environment="A", seed=1)
    ebql(write_run, "e", [1, 2], environment="B")
    ebql(write_run, "e1", [2, 3], environment="B", seed=1)
    study = read_scores(tmp_path)
    assert study.compared == study.contenders == []


def test_speed_is_that_of_learning_without_evaluations_and_what_a_resume_repeated_counts(write_run, tmp_path):
    path = write_run("a", [1], learning_starts=100)
    write_timing(
        path,
        {"step": 100, "seconds": 0.01, "peak_memory_bytes": 5},
        {"step": 200, "seconds": 10.0, "peak_memory_bytes": 9},
        {"step": 200, "seconds": 500.0, "peak_memory_bytes": 9},  # an evaluation
        {"step": 300, "seconds": 10.0, "peak_memory_bytes": 9},
        {"step": 200, "seconds": 3.0, "peak_memory_bytes": 7},  # resumed from before
        {"step": 300, "seconds": 20.0, "peak_memory_bytes": 7},
    )
    cost = read_scores(tmp_path).costs("DQN")
    assert cost.speed == pytest.approx(300 / 40)
    assert cost.peak_memory == 9


def test_what_was_not_timed_is_unknown(write_run, tmp_path):
    write_run("a", [1])
    assert np.isnan(read_scores(tmp_path).costs("DQN")).all()


def test_runs_not_evaluated_yet_wait(write_run, tmp_path):
    write_run("a", [1, 2])
    write_run("b", [], seed=1)
    assert [run.seed for run in read_scores(tmp_path).waiting] == [1]


def test_a_folder_without_an_evaluated_run_is_refused(write_run, tmp_path):
    write_run("a", [])
    with pytest.raises(InputError, match="None of the 1 runs"):
        read_scores(tmp_path)


def test_biases_are_compared_in_clipped_rewards_if_all_runs_clip_alike(write_run, edit_log, tmp_path):
    """Relative to a return of almost nothing, the same bias would be a thousand times the other one."""
    clipped, told = {"biases": [0.2], "reward_clip": 1.0}, '"bias/mean"'
    for name, relative in (("a", 2000.0), ("b", 2.0)):
        path = write_run(f"study/{name}", [3.0], environment=f"{name}-v0", **clipped)
        edit_log(path / "metrics.jsonl", told, f'"bias/normalised": {relative}, {told}')
        write_run(f"study/{name}2", [4.0], agent="double-dqn", environment=f"{name}-v0", **clipped)
    study = read_scores(tmp_path / "study")
    assert study.bias_scale is IN_CLIPPED_REWARDS
    assert study.comparable_biases("DQN") == [[0.2], [0.2]]
    write_run("study/c", [3.0], agent="ebql", environment="a-v0")
    assert read_scores(tmp_path / "study").bias_scale is RELATIVE


def test_scores_can_be_on_the_scale_of_another_study(write_run, tmp_path):
    for environment, ours in (("A", 30), ("B", 7)):
        write_run(f"study/d{environment}", [0, 10], environment=environment)
        ebql(write_run, f"study/e{environment}", [0, ours], environment=environment)
    groups = read_scores(tmp_path / "study").groups
    own = score(groups)
    assert [run.normalised for run in own.scored_runs("A", "EBQL K=5")] == [1]
    other = score(groups, scales={"A": Reference(0, 10, "nothing", "DQN")})
    assert [run.normalised for run in other.scored_runs("A", "EBQL K=5")] == [3]
    assert other.compared == ["A"]
