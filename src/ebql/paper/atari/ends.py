"""What figure 6 compares our curves with: scores at the end of other people's runs, on the same games.

Runs of 100,000 steps are compared with the sample-efficiency literature, all others with the paper.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ebql.analysis.runs import RunGroup
from ebql.paper.atari import published
from ebql.paper.atari.runs import NormalizedCurve, at_published_length, cell, game_of_group, normalized_curves
from ebql.paper.atari.scores import AGENTS, FULL, GAMES, paper_scores, summary


class End(NamedTuple):
    """The human-normalised score of a method after training."""

    method: str
    source: str
    """`paper`, or where the method's scores are from."""
    games: tuple[str, ...]
    seeds: int | None
    """None if the source does not say it for all games."""
    steps: int
    """Agent steps of training."""
    mean: float
    median: float

    @property
    def is_of_paper(self) -> bool:
        """Whether it is a column of the paper's table."""
        return self.source == "paper"


def curves_and_ends(groups: Sequence[RunGroup]) -> tuple[list[NormalizedCurve], list[End]]:
    """Return our curves, and what to compare each with on its games.

    If all runs have the length of the literature, the curves are over its games, as far as they were run.
    """
    if early := _in_literature(groups):
        curves = normalized_curves(early)
        if len({curve.games for curve in curves}) == 1:
            return curves, _literature_ends(curves[0].games)
    curves = normalized_curves(groups)
    return curves, paper_ends(curves)


def paper_ends(curves: Sequence[NormalizedCurve] = ()) -> list[End]:
    """Return the paper's agents, each on the games of our curve of it; without curves, on all games."""
    own = {curve.agent: curve.games for curve in curves}
    default = curves[0].games if curves else GAMES
    return [
        _end(agent, "paper", paper_scores(agent, own.get(agent, default)), FULL.seeds, FULL.steps)
        for agent in AGENTS
    ]


def _literature_ends(games: Sequence[str]) -> list[End]:
    return [
        _end(each.method, each.source, {game: each.scores[game] for game in games}, None, published.STEPS)
        for each in published.PUBLISHED
    ]


def _in_literature(groups: Sequence[RunGroup]) -> list[RunGroup]:
    """Return the groups on games of the literature; none if any run has another length."""
    if len(at_published_length([cell(group) for group in groups])) < len(groups):
        return []
    return [group for group in groups if game_of_group(group) in published.GAMES]


def _end(method: str, source: str, scores: Mapping[str, float], seeds: int | None, steps: int) -> End:
    found = summary(scores)
    return End(method, source, tuple(scores), seeds, steps, found.mean, found.median)
