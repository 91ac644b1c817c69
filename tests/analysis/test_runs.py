import numpy as np
import pytest

from ebql.analysis.runs import BIAS, RETURN, Course, grouped, over_available_seeds, read_runs
from ebql.errors import InputError


def test_runs_that_differ_in_their_seed_are_one_group_of_arrays(write_run):
    paths = [write_run("b", [4, 5, 6], seed=1), write_run("a", [1, 2, 3], seed=0)]
    (group,) = grouped(read_runs(paths))
    assert (group.environment, group.label) == ("W-v0", "DQN")
    assert [run.seed for run in group.runs] == [0, 1]
    course = group.course(RETURN)
    assert course.steps.tolist() == [10, 20, 30]
    assert course.values.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_what_an_unfinished_run_has_not_measured_is_nan(write_run):
    paths = [write_run("a", [1, 2, 3]), write_run("b", [4], seed=1), write_run("c", [], seed=2)]
    with (paths[1] / "metrics.jsonl").open("a") as file:
        file.write('{"step": 20, "evalu')
    runs = read_runs(paths)
    assert [run.finished for run in runs] == [True, False, False]
    np.testing.assert_equal(
        grouped(runs)[0].course(RETURN).values, [[1, 2, 3], [4, np.nan, np.nan], [np.nan] * 3]
    )


def test_a_run_without_metrics_and_a_bias_that_could_not_be_measured(write_run):
    paths = [write_run("a", [1, 2], biases=[None, 0.5]), write_run("b", [], seed=1)]
    (paths[1] / "metrics.jsonl").unlink()
    (group,) = grouped(read_runs(paths))
    np.testing.assert_equal(group.course(BIAS).values, [[np.nan, 0.5], [np.nan, np.nan]])
    assert group.course("nothing").values.shape == (2, 0)


def test_steps_a_little_apart_are_one_evaluation(write_run):
    paths = [write_run("a", [1, 2], period=1000), write_run("b", [3, 4], seed=1, period=1000)]
    log = (paths[1] / "metrics.jsonl").read_text()
    (paths[1] / "metrics.jsonl").write_text(log.replace('"step": 2000', '"step": 2007'))
    (group,) = grouped(read_runs(paths))
    assert group.course(RETURN).steps.tolist() == [1000, 2000]
    assert group.course(RETURN).values.tolist() == [[1, 2], [3, 4]]


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
    with pytest.raises(InputError, match="holds none"):
        read_runs([tmp_path])
    with pytest.raises(InputError, match="no run folder"):
        read_runs([tmp_path / "nothing"])


def test_the_interval_is_students_over_the_seeds_that_have_arrived():
    values = np.full((6, 4), np.nan)
    values[:, 0] = 0, 0, 0, 2, 2, 2
    values[:5, 1] = 0, 1, 2, 3, 4
    values[:4, 2] = 7
    band = over_available_seeds(Course(np.array([10, 20, 30, 40]), values))
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
    (tmp_path / "study.toml").write_text(
        'environments = ["CartPole-v1"]\nseeds = [0]\nsteps = 30\nagents = ["dqn"]\n'
        '[[agent]]\nname = "dqn"\nlabel = "DQN fast"\nlearning_rate = 0.1\n'
    )
    for label, rate in (("dqn", 0.01), ("dqn-fast", 0.1)):
        write_run(f"runs/CartPole-v1_{label}_0", [1], environment="CartPole-v1", learning_rate=rate)
    assert {group.label for group in grouped(read_runs([tmp_path]))} == {"DQN", "DQN fast"}


LABELLED = (
    'environments = ["CartPole-v1"]\nseeds = [0]\nsteps = 30\n'
    '[[agent]]\nname = "dqn"\nlabel = "Mine"\nlearning_rate = {rate}\n'
)


def test_one_label_of_two_studies_is_two_agents_if_their_options_differ(write_run, tmp_path):
    for study, rate, seed in (("a", 0.1, 0), ("b", 0.2, 1), ("c", 0.2, 2)):
        name = f"{study}/runs/CartPole-v1_mine_{seed}"
        write_run(name, [1], environment="CartPole-v1", learning_rate=rate, seed=seed)
        (tmp_path / study / "study.toml").write_text(LABELLED.format(rate=rate))
    found = {group.label: list(group.seeds) for group in grouped(read_runs([tmp_path]))}
    assert found == {"Mine, learning_rate=0.1": [0], "Mine, learning_rate=0.2": [1, 2]}


def test_a_seed_that_a_study_asks_for_no_longer_keeps_its_label(write_run, tmp_path):
    for seed in (0, 1):
        write_run(
            f"runs/CartPole-v1_mine_{seed}", [1], environment="CartPole-v1", learning_rate=0.1, seed=seed
        )
    (tmp_path / "study.toml").write_text(LABELLED.format(rate=0.1))
    (group,) = grouped(read_runs([tmp_path]))
    assert (group.label, list(group.seeds)) == ("Mine", [0, 1])


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("metrics.jsonl", '{"step": 1, "evaluation/return": "much"}\n', "are damaged"),
        ("metrics.jsonl", '{"loss": 1}\n', "are damaged"),
        ("timing.jsonl", '{"step": "one"}\n', "are damaged"),
        ("metrics.jsonl", "{\n", "is damaged"),
        ("config.json", '{"format": "ebql run 1", "options": {"seed": 0}}', "lacks agent, environment"),
        (
            "config.json",
            '{"format": "ebql run 1", "agent": "dqn", "environment": "W-v0", "steps": 1, "options": {}}',
            "lacks a seed",
        ),
    ],
)
def test_a_damaged_run_is_one_clear_line(write_run, file, content, told):
    run = write_run("a", [1])
    (run / file).write_text(content)
    with pytest.raises(InputError, match=told):
        read_runs([run])
