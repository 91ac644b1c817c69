import json

import numpy as np
import pytest

from ebql.analysis.runs import LearningCurve, change_notes, grouped, over_available_seeds, read_runs
from ebql.errors import InputError
from ebql.runs import read_metrics
from ebql.runs.metric_names import BIAS_MEAN, EVALUATION_RETURN


def test_runs_that_differ_in_their_seed_are_one_group_of_arrays(write_run):
    paths = [write_run("b", [4, 5, 6], seed=1), write_run("a", [1, 2, 3], seed=0)]
    (group,) = grouped(read_runs(paths))
    assert (group.environment, group.label) == ("W-v0", "DQN")
    assert [run.seed for run in group.runs] == [0, 1]
    curve = group.curve(EVALUATION_RETURN)
    assert curve.steps.tolist() == [10, 20, 30]
    assert curve.values.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_what_an_unfinished_run_has_not_measured_is_nan(write_run):
    paths = [write_run("a", [1, 2, 3]), write_run("b", [4], seed=1), write_run("c", [], seed=2)]
    with (paths[1] / "metrics.jsonl").open("a") as file:
        file.write('{"step": 20, "evalu')
    runs = read_runs(paths)
    assert [run.finished for run in runs] == [True, False, False]
    np.testing.assert_equal(
        grouped(runs)[0].curve(EVALUATION_RETURN).values, [[1, 2, 3], [4, np.nan, np.nan], [np.nan] * 3]
    )


def test_a_run_without_metrics_and_a_bias_that_could_not_be_measured(write_run):
    paths = [write_run("a", [1, 2], biases=[None, 0.5]), write_run("b", [], seed=1)]
    (paths[1] / "metrics.jsonl").unlink()
    (group,) = grouped(read_runs(paths))
    np.testing.assert_equal(group.curve(BIAS_MEAN).values, [[np.nan, 0.5], [np.nan, np.nan]])
    assert group.curve("nothing").values.shape == (2, 0)


def test_steps_a_little_apart_are_one_evaluation(write_run, edit_log):
    paths = [write_run("a", [1, 2], period=1000), write_run("b", [3, 4], seed=1, period=1000)]
    edit_log(paths[1] / "metrics.jsonl", '"step": 2000', '"step": 2007')
    (group,) = grouped(read_runs(paths))
    assert group.curve(EVALUATION_RETURN).steps.tolist() == [1000, 2000]
    assert group.curve(EVALUATION_RETURN).values.tolist() == [[1, 2], [3, 4]]


def test_agents_are_told_apart_by_size_and_by_the_options_that_differ(write_run):
    paths = [
        write_run("a", [1], agent="ebql", ensemble_size=10, lr=1),
        write_run("b", [1], agent="ebql", ensemble_size=5, lr=1),
        write_run("c", [1], agent="ebql", ensemble_size=5, lr=2, seed=1),
        write_run("d", [1], agent="double-dqn", lr=1, threads=1),
        write_run("e", [1], agent="double-dqn", lr=1, threads=2, seed=1),
    ]
    labels = [group.label for group in grouped(read_runs(paths))]
    assert labels == ["DoubleDQN", "EBQL K=5, lr=1", "EBQL K=5, lr=2", "EBQL K=10"]


def test_environments_keep_their_order(write_run):
    paths = [write_run("z", [1], environment="Z-v0", agent="ebql", ensemble_size=5), write_run("a", [1])]
    assert [group.environment for group in grouped(read_runs(paths))] == ["Z-v0", "W-v0"]


def test_a_folder_stands_for_the_runs_below_it_and_each_is_read_once(write_run, tmp_path):
    first = write_run("study/a", [1])
    write_run("study/more/b", [1], seed=1)
    assert [run.path.name for run in read_runs([tmp_path / "study", first])] == ["a", "b"]


def test_two_runs_with_one_seed_are_refused(write_run):
    paths = [write_run("a", [1]), write_run("b", [1])]
    with pytest.raises(InputError, match="have the seed 0"):
        grouped(read_runs(paths))


def test_what_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains none"):
        read_runs([tmp_path])
    with pytest.raises(InputError, match="no run folder"):
        read_runs([tmp_path / "nothing"])


def test_the_interval_is_students_over_the_seeds_that_have_arrived():
    values = np.full((6, 4), np.nan)
    values[:, 0] = 0, 0, 0, 2, 2, 2
    values[:5, 1] = 0, 1, 2, 3, 4
    values[:4, 2] = 7
    band = over_available_seeds(LearningCurve(np.array([10, 20, 30, 40]), values))
    assert band.steps.tolist() == [10, 20, 30]
    assert band.seeds.tolist() == [6, 5, 4]
    assert band.mean.tolist() == [1, 2, 7]
    # t of 5 and of 4 degrees of freedom, from a printed table; four seeds are too few
    expected = [2.5706 * np.sqrt(1.2 / 6), 2.7764 * np.sqrt(2.5 / 5), np.inf]
    np.testing.assert_allclose(band.half_width, expected, rtol=1e-4)


def test_options_that_an_older_version_did_not_know_make_no_other_agent(write_run):
    old, new = write_run("a", [1]), write_run("b", [1], seed=1, prioritized=False)
    (group,) = grouped(read_runs([old, new]))
    assert (group.label, [run.seed for run in group.runs]) == ("DQN", [0, 1])


def test_a_studys_label_is_its_agents_name(write_run, tmp_path):
    write_run("runs/a", [1], label="dqn", learning_rate=0.01)
    write_run("runs/b", [1], label="DQN fast", learning_rate=0.1)
    runs = read_runs([tmp_path])
    assert [run.label for run in runs] == [None, "DQN fast"]  # the agent's name alone is no label
    assert {group.label for group in grouped(runs)} == {"DQN", "DQN fast"}


def test_a_run_of_an_earlier_version_has_its_agents_name_whatever_its_study_says(write_run, tmp_path):
    path = write_run("runs/CartPole-v1_mine_0", [1], agent="ebql", ensemble_size=3, environment="CartPole-v1")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(
        json.dumps({key: value for key, value in config.items() if key not in ("kind", "label", "seal")})
    )
    (tmp_path / "study.toml").write_text(
        'environments = ["CartPole-v1"]\nseeds = [0]\nsteps = 30\n[[agent]]\nname = "ebql"\nlabel = "Mine"\n'
    )
    (run,) = read_runs([tmp_path])
    assert (run.label, run.name) == (None, "EBQL K=3")


def test_one_label_is_two_agents_if_their_options_differ(write_run, tmp_path):
    for study, rate, seed in (("a", 0.1, 0), ("b", 0.2, 1), ("c", 0.2, 2)):
        write_run(f"{study}/runs/mine_{seed}", [1], label="Mine", learning_rate=rate, seed=seed)
    found = {group.label: list(group.seeds) for group in grouped(read_runs([tmp_path]))}
    assert found == {"Mine, learning_rate=0.1": [0], "Mine, learning_rate=0.2": [1, 2]}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("metrics.jsonl", '{"step": 1, "evaluation/return": "much"}\n', "was changed after"),
        ("metrics.jsonl", '{"loss": 1}\n', "was changed after"),
        ("timing.jsonl", '{"step": "one"}\n', "was changed after"),
        ("metrics.jsonl", "{\n", r"metrics.jsonl' was changed after .*\(line 1\)"),
        ("config.json", '{"format": "ebql run 1", "options": {"seed": 0}}', "lacks agent, environment"),
        (
            "config.json",
            '{"format": "ebql run 1", "agent": "dqn", "environment": "W-v0", "steps": 1, "options": {}}',
            "lacks a seed",
        ),
    ],
)
def test_a_damaged_run_is_one_clear_line(write_run, file, content, message):
    run = write_run("a", [1])
    (run / file).write_text(content)
    with pytest.raises(InputError, match=message):
        read_runs([run])


def test_a_changed_run_is_refused_or_marked(write_run):
    run = write_run("a", [1, 2])
    untouched = write_run("b", [1, 2], seed=1)
    log = run / "metrics.jsonl"
    log.write_text(log.read_text().replace('"evaluation/return": 2', '"evaluation/return": 200'))
    with pytest.raises(InputError, match=r"metrics.jsonl' was changed after it was written \(line 4\)"):
        read_runs([run])
    runs = read_runs([run, untouched], accept_changes=True)
    assert [run.changes for run in runs] == [["metrics.jsonl"], []]
    assert change_notes(runs) == ["Changed by hand, and included as it is: a (metrics.jsonl)."]


def test_a_run_of_version_0_1_is_said_to_have_no_seals(write_run):
    run = write_run("a", [1, 2])
    records = read_metrics(run / "metrics.jsonl")
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (found,) = read_runs([run])
    assert found.unsealed
    assert "without seals that show changes: 1 of 1 runs" in change_notes([found])[0]


def test_two_evaluations_of_one_run_are_never_one(write_run, edit_log):
    paths = [write_run(str(seed), [1, 2, 3], seed=seed, period=100) for seed in (0, 1)]
    edit_log(
        paths[0] / "metrics.jsonl", '"step": 300', '"step": 203'
    )  # the end comes soon after an evaluation
    edit_log(paths[1] / "metrics.jsonl", '"step": 300', '"step": 204')
    (group,) = grouped(read_runs(paths))
    steps, values = group.curve("evaluation/return")
    assert steps.tolist() == [100, 200, 203]
    assert values.tolist() == [[1, 2, 3], [1, 2, 3]]
