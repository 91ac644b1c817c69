from ebql.analysis.references import reference
from ebql.analysis.runs import read_runs
from ebql.runs import MetricsLog, read_metrics


def with_random_play(path, *records):
    later = read_metrics(path / "metrics.jsonl")
    with MetricsLog(path / "metrics.jsonl", 0) as log:
        for record in (*records, *later):
            log.append(record)
    return path


def test_random_play_is_zero_and_the_best_agents_mean_one(write_run):
    paths = [
        with_random_play(
            write_run("a", [1]),
            {"step": 1, "epsilon": 0.99, "return": None},
            {"step": 2, "epsilon": 0.95, "return": 2.0},
            {"step": 3, "epsilon": 0.91, "return": 99.0},
        ),
        with_random_play(write_run("b", [1], seed=1), {"step": 2, "epsilon": 0.9, "return": 4.0}),
        with_random_play(write_run("c", [1], seed=2), {"step": 2, "epsilon": 0.5, "return": 99.0}),
    ]
    scale = reference("W-v0", read_runs(paths), {"DQN": [5.0, 6.0], "EBQL K=5": [5.0, 21.0]})
    assert scale == (3.0, 13.0, "random play", "EBQL K=5")
    assert scale.normalised(8.0) == 0.5


def test_without_random_play_the_lowest_run_is_zero(write_run):
    scale = reference("W-v0", read_runs([write_run("a", [1])]), {"DQN": [5.0, 6.0], "EBQL K=5": [4.0]})
    assert scale == (4.0, 5.5, "the lowest run", "DQN")


def test_if_nobody_beats_random_play_there_is_no_scale(write_run):
    runs = read_runs([write_run("a", [1])])
    assert reference("W-v0", runs, {"DQN": [2.0]}) is None


def test_atari_is_measured_by_the_human_player():
    scale = reference("ALE/Pong-v5", [], {"DQN": [0.0]})
    assert (scale.zero, scale.one) == (-20.7, 9.3)


def test_a_game_of_the_same_name_is_not_ataris(write_run):
    scale = reference("MinAtar/Breakout-v1", read_runs([write_run("a", [1])]), {"DQN": [0.0, 1.0]})
    assert scale.one == 0.5
