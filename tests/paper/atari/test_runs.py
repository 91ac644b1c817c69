import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebql.analysis.keeping import keep
from ebql.errors import InputError
from ebql.paper.atari.runs import (
    aggregates,
    atari_groups,
    cell,
    moving_average,
    normalized_curves,
    shared_games,
)

PONG, BREAKOUT = "ALE/Pong-v5", "ALE/Breakout-v5"

pytestmark = pytest.mark.usefixtures("paper_preset")


def test_a_cell_is_the_mean_over_seeds_of_each_ones_last_evaluation(write_run):
    paths = [
        write_run("a", [9, 9, 4], environment=PONG),
        write_run("b", [9, 6], environment="pong", seed=1),
        write_run("c", [], environment=PONG, seed=2),
    ]
    (group,) = atari_groups(paths)
    found = cell(group)
    assert (found.game, found.agent, found.seeds, found.steps) == ("Pong", "DQN", 2, (20, 30))
    assert found.mean == 5
    assert (found.lowest, found.highest) == (4, 6)
    assert not found.complete


def test_a_cell_has_an_interval_from_five_seeds_on(write_run):
    paths = [write_run(f"{seed}", [seed], environment=PONG, seed=seed) for seed in range(5)]
    (five,) = atari_groups(paths)
    assert cell(five).half_width == pytest.approx(2.7764 * np.sqrt(2.5 / 5), rel=1e-4)  # t of four degrees
    (four,) = atari_groups(paths[:4])
    assert np.isinf(cell(four).half_width)


def test_departures_are_the_options_that_differ_from_the_papers(write_run):
    same = {"learning_rate": 2.5e-4, "hidden": [512]}
    exact = write_run("a", [1], environment=PONG, agent="ebql", ensemble_size=5, threads=2, **same)
    other = write_run("b", [1], environment=BREAKOUT, learning_rate=1e-3, hidden=[512], envs=8)
    cells = [cell(group) for group in atari_groups([exact, other])]
    assert [found.departures for found in cells] == [(), ("learning_rate", "envs")]


def test_a_cell_is_complete_with_five_seeds_of_fifty_million_steps(write_run):
    paths = [write_run(f"{s}", [1], environment=PONG, seed=s, period=50_000_000) for s in range(5)]
    (group,) = atari_groups(paths)
    assert cell(group).complete
    (four,) = atari_groups(paths[:4])
    assert not cell(four).complete


def test_runs_elsewhere_are_left_out_and_refused_if_there_are_no_others(write_run):
    elsewhere, unevaluated = write_run("a", [1]), write_run("b", [], environment=PONG)
    with pytest.raises(InputError, match="None of these runs is on a game of table 1; they are on W-v0"):
        atari_groups([elsewhere])
    with pytest.raises(InputError, match="None of these 1 Atari runs has been evaluated"):
        atari_groups([elsewhere, unevaluated])
    assert len(atari_groups([elsewhere, write_run("c", [1], environment=PONG)])) == 1


def test_curves_are_over_common_games_as_far_as_all_seeds_have_come(some_groups):
    dqn, ebql = normalized_curves(some_groups)
    assert dqn.games == ebql.games == ("Breakout", "Pong")
    assert (dqn.agent, dqn.seeds, dqn.steps.tolist()) == ("DQN", 1, [10, 20])
    np.testing.assert_allclose(dqn.mean, [0, 1], atol=1e-12)
    # Breakout is evaluated at step 20 only: there begins what both games have.
    assert (ebql.agent, ebql.steps.tolist()) == ("EBQL K=5", [20])
    np.testing.assert_allclose(ebql.median, [1])


def test_without_a_common_game_each_agent_has_its_own(write_run):
    groups = atari_groups(
        [
            write_run("d", [31.8], environment=BREAKOUT),
            write_run("e", [9.3], environment=PONG, agent="double-dqn"),
        ]
    )
    assert [curve.games for curve in normalized_curves(groups)] == [("Breakout",), ("Pong",)]


def test_median_and_mean_differ_where_games_do(write_run):
    paths = [
        write_run("a", [9.3], environment=PONG),
        write_run("b", [31.8], environment=BREAKOUT),
        write_run("c", [16256.9 + 10 * 1040.7], environment="ALE/VideoPinball-v5"),
    ]
    (curve,) = normalized_curves(atari_groups(paths))
    np.testing.assert_allclose([curve.mean[0], curve.median[0]], [4, 1])


def test_shared_games_are_those_of_all_agents_of_the_table(some_groups):
    cells = [cell(group) for group in some_groups]
    assert shared_games(cells) == ("Breakout", "Pong")
    assert shared_games([]) == ()


def test_the_moving_average_looks_back_only():
    np.testing.assert_allclose(moving_average(np.array([1.0, 3, 5, 7, 9, 11])), [1, 2, 3, 4, 5, 7])


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_the_moving_average_stays_between_the_extremes(values):
    found = moving_average(np.array(values))
    assert len(found) == len(values)
    assert all(min(values) - 1e-6 <= x <= max(values) + 1e-6 for x in found)


def test_aggregates_are_of_the_games_that_all_agents_have(write_run, tmp_path):
    for seed in range(5):
        # Of a human's 30 points in Pong, DQN is 3 + seed above random; in Breakout a human's 30.1 is all.
        write_run(f"p{seed}", [-20.7 + 3 + seed], environment=PONG, seed=seed, steps=10)
        write_run(f"b{seed}", [31.8], environment=BREAKOUT, seed=seed, steps=10)
        write_run(f"q{seed}", [9.3], environment=PONG, seed=seed, agent="double-dqn", steps=10)
    one, other = aggregates(atari_groups([tmp_path]))
    assert (one.agent, one.games, one.seeds) == ("DQN", 1, 5)
    assert (one.mean.value, one.median.value, one.iqm.value) == pytest.approx((5 / 30, 5 / 30, 5 / 30))
    assert one.mean.low < 5 / 30 < one.mean.high
    assert other.iqm == pytest.approx((1, 1, 1))


def test_kept_runs_are_cells_too(write_run, tmp_path):
    write_run("runs/a", [1, 2, 3], environment=PONG)
    write_run("runs/b", [1, 2, 5], environment=PONG, seed=1)
    keep(tmp_path / "runs", tmp_path / "kept")
    (of_runs,), (of_tables,) = atari_groups([tmp_path / "runs"]), atari_groups([tmp_path / "kept"])
    assert cell(of_tables) == cell(of_runs)
    (one,) = aggregates([of_tables])
    assert np.isnan(one.iqm.low)
