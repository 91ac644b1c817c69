"""The paper's claim about the first part of training (section 7, figure 6), at the length of our runs."""

from collections.abc import Sequence

from scipy.special import betaincinv

from ebql.estimators.intervals import CONFIDENCE
from ebql.paper.atari.runs import Cell, cells_of
from ebql.paper.atari.scores import DOUBLE_DQN, DQN, EBQL
from ebql.paper.ledger import Claim, Evidence

EARLY = 20_000_000
"""Agent steps below which the paper speaks of few samples."""
FEWEST_GAMES = 6
"""With fewer games without a tie, a 95% interval contains one half even if one agent wins all of them."""


def small_sample_claim(cells: Sequence[Cell]) -> Claim | None:
    """Return the claim that EBQL is ahead early in training; None unless enough games compare it with both.

    The games are the sample, as the paper chose them at random: each counts once, for the agent with the
    higher mean over seeds.
    """
    over_dqn, over_double = (_ahead(cells, other) for other in (DQN, DOUBLE_DQN))
    if over_dqn is None or over_double is None:
        return None
    return Claim(
        "EBQL is ahead early in training",
        "figure 6",
        "With few samples, EBQL scores higher than DQN and than double DQN in more than half of the games.",
        (over_dqn, over_double),
        "The paper claims more: below 20 million steps EBQL is also ahead of Rainbow, with which it is not "
        "compared here. Games with equal scores are left out.",
    )


def _ahead(cells: Sequence[Cell], other: str) -> Evidence | None:
    """Return the share of games in which EBQL scores higher, among those of equal length without a tie."""
    mine, theirs = cells_of(cells, EBQL), cells_of(cells, other)
    pairs = [
        (own, theirs[game])
        for game, own in mine.items()
        if game in theirs and own.steps == theirs[game].steps and own.steps[1] < EARLY
    ]
    decided = [(one, two) for one, two in pairs if one.mean != two.mean]
    if len(decided) < FEWEST_GAMES:
        return None
    wins = sum(one.mean > two.mean for one, two in decided)
    low, high = share_interval(wins, len(decided))
    seeds = _range([cell.seeds for pair in decided for cell in pair])
    steps = _range([step for one, _ in decided for step in one.steps])
    return Evidence(
        f"{len(decided)} games, seeds per cell: {seeds}, {steps} agent steps",
        f"share of games in which {EBQL} scores higher than {other}",
        wins / len(decided),
        low,
        high,
        threshold=0.5,
    )


def share_interval(wins: int, games: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the exact interval of a share (Clopper and Pearson, 1934), given the wins among some games."""
    tail = (1 - confidence) / 2
    low = float(betaincinv(wins, games - wins + 1, tail)) if wins else 0.0
    high = float(betaincinv(wins + 1, games - wins, 1 - tail)) if wins < games else 1.0
    return low, high


def _range(numbers: Sequence[int]) -> str:
    return " to ".join(f"{number:,}" for number in sorted({min(numbers), max(numbers)}))
