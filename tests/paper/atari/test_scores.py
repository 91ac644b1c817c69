import pytest

from ebql.analysis.human_scores import normalized
from ebql.paper.atari.scores import (
    AGENTS,
    DOUBLE_DQN,
    DQN,
    EBQL,
    FULL,
    GAMES,
    PAPER,
    environment_id,
    lead,
    paper_scores,
    summary,
)


@pytest.mark.parametrize(
    ("game", "human", "random", "dqn", "double_dqn", "ebql"),
    [
        ("Asterix", 8503.3, 210.0, 4603.2, 5718.1, 22152.5),
        ("CrazyClimber", 35410.5, 10780.5, 93677.1, 111765.4, 127967.5),
        ("DoubleDunk", -15.5, -18.6, -15.8, -18.6, -10.1),
        ("PrivateEye", 69571.3, 24.9, 78.1, 100.0, 100.0),
        ("Tennis", -8.9, -23.8, -1.2, -14.5, -1.1),
        ("VideoPinball", 17297.6, 16256.9, 104146.4, 230534.3, 361205.1),
    ],
)
def test_the_cells_are_the_papers(game, human, random, dqn, double_dqn, ebql):
    row = PAPER[game]
    assert (row.human, row.random) == (human, random)
    assert [row.of(agent) for agent in (DQN, DOUBLE_DQN, EBQL)] == [dqn, double_dqn, ebql]


def test_column_sums_catch_a_slip_in_any_cell():
    # Added up from the printed table, column by column.
    sums = [round(sum(column), 1) for column in zip(*PAPER.values(), strict=True)]
    assert sums == [154420.4, 27643.9, 239179.7, 401920.5, 604093.1]


def test_mean_and_median_over_games():
    # Pong 21.0 → 1.39, Qbert 163.9 → 0, Breakout 31.8 → 1: the median is neither the first nor the mean.
    found = summary({"Pong": 21.0, "Qbert": 163.9, "Breakout": 31.8})
    assert found == (3, pytest.approx((1.39 + 0 + 1) / 3), pytest.approx(1))


def test_the_papers_columns_put_on_one_scale():
    # The paper prints no mean or median; these follow from its cells, worked out apart from this package.
    means, medians = [971.4, 2113.6, 3424.3], [151.7, 135.3, 274.2]
    for agent, mean, median in zip(AGENTS, means, medians, strict=True):
        found = summary(paper_scores(agent))
        assert (100 * found.mean, 100 * found.median) == pytest.approx((mean, median), abs=0.05)


def test_one_game_makes_most_of_the_mean():
    # Human and random are 1,040.7 points apart on VideoPinball: the mean over eleven games is mostly it.
    scores = paper_scores(EBQL)
    share = normalized("VideoPinball", scores["VideoPinball"]) / (11 * summary(scores).mean)
    assert share == pytest.approx(0.88, abs=0.005)
    del scores["VideoPinball"]
    assert summary(scores).mean == pytest.approx(4.52, abs=0.005)


def test_what_the_paper_says_of_its_table():
    # "Consistently the highest": on PrivateEye it is a tie. "All but PrivateEye above the human": so it is.
    assert [game for game in GAMES if lead(game) <= 0] == ["PrivateEye"]
    assert lead("PrivateEye") == 0
    assert [game for game, row in PAPER.items() if row.ebql < row.human] == ["PrivateEye"]
    assert lead("Gopher") == pytest.approx((21940.0 - 6940.5) / (2321.0 - 257.6))


def test_the_protocol_counts_its_runs():
    assert FULL.runs == 165
    assert FULL.agent_steps == 8_250_000_000


def test_environment_ids_of_games():
    assert environment_id("CrazyClimber") == "ALE/CrazyClimber-v5"
