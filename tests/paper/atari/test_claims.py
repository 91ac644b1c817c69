import pytest
from scipy.stats import binomtest

from ebql.paper.atari.claims import EARLY, FEWEST_GAMES, share_interval, small_sample_claim
from ebql.paper.atari.runs import Cell
from ebql.paper.atari.scores import DOUBLE_DQN, DQN, EBQL, GAMES
from ebql.paper.ledger import Verdict


def a_cell(game, agent, score, steps=100_000):
    return Cell(game, agent, 1, (steps, steps), score, float("inf"), score, score, None, "none", ())


def cells_with(wins, ties=0, others=(DQN, DOUBLE_DQN), steps=100_000):
    """EBQL scores 2 on every game; each other agent 1 where EBQL wins, 2 where they tie, and else 3."""
    scores = [1.0] * wins + [2.0] * ties + [3.0] * (len(GAMES) - wins - ties)
    return [a_cell(game, EBQL, 2.0, steps) for game in GAMES] + [
        a_cell(game, other, score, steps)
        for other in others
        for game, score in zip(GAMES, scores, strict=True)
    ]


@pytest.mark.parametrize("games", range(1, 12))
def test_the_interval_of_a_share_is_scipys_exact_one(games):
    for wins in range(games + 1):
        expected = binomtest(wins, games).proportion_ci(0.95, "exact")
        assert share_interval(wins, games) == pytest.approx((expected.low, expected.high))


def test_the_fewest_games_are_those_that_can_decide():
    assert share_interval(FEWEST_GAMES, FEWEST_GAMES)[0] > 0.5
    assert share_interval(FEWEST_GAMES - 1, FEWEST_GAMES - 1)[0] < 0.5


@pytest.mark.parametrize(
    ("wins", "verdict"), [(11, Verdict.HOLDS), (10, Verdict.HOLDS), (6, Verdict.OPEN), (1, Verdict.FAILS)]
)
def test_the_claim_needs_a_clear_majority_of_games(wins, verdict):
    claim = small_sample_claim(cells_with(wins))
    assert claim.verdict is verdict
    assert [found.value for found in claim.evidence] == [pytest.approx(wins / 11)] * 2
    assert claim.evidence[0].regime == "11 games, seeds per cell: 1, 100,000 agent steps"


def test_ahead_of_one_and_behind_the_other_is_mixed():
    cells = [*cells_with(11, others=(DQN,)), *cells_with(0, others=(DOUBLE_DQN,))[len(GAMES) :]]
    claim = small_sample_claim(cells)
    assert [found.verdict for found in claim.evidence] == [Verdict.HOLDS, Verdict.FAILS]
    assert claim.verdict is Verdict.MIXED


@pytest.mark.parametrize("other", [DQN, DOUBLE_DQN])
def test_a_claim_about_both_needs_both(other):
    assert small_sample_claim(cells_with(11, others=(other,))) is None


def test_ties_long_runs_and_unequal_lengths_do_not_count():
    assert small_sample_claim(cells_with(3, ties=2)).evidence[0].value == pytest.approx(3 / 9)
    assert small_sample_claim(cells_with(11, steps=EARLY)) is None
    ours = [own for own in cells_with(11, steps=50_000) if own.agent == EBQL]
    assert small_sample_claim(ours + [own for own in cells_with(11) if own.agent != EBQL]) is None
    assert small_sample_claim([]) is None
