"""A common scale for scores, so that they can be aggregated over environments."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ebql.analysis.human_scores import PLAYERS, game_of
from ebql.analysis.runs import RecordedRun

HUMAN = "the human player"
"""What 1 is on the scale of Atari games."""


class Reference(NamedTuple):
    """The scores that are 0 and 1 on an environment's scale, and what they stand for."""

    zero: float
    one: float
    zero_is: str
    one_is: str

    def normalised(self, score: float) -> float:
        """Return a score on the scale of this reference."""
        return (score - self.zero) / (self.one - self.zero)


def reference(
    environment: str,
    runs: Sequence[RecordedRun],
    scores: Mapping[str, Sequence[float]],
    *,
    by_human: bool = True,
) -> Reference | None:
    """Return an environment's scale, given its runs and each agent's scores; None if no agent beats its 0.

    If `by_human`, the paper's Atari games are normalised by the random and the human player. Otherwise 0 is
    random play, measured by the first training episodes of all runs (or else the lowest score), and 1 is the
    mean score of the best agent.
    """
    if by_human and (known := _human(environment)) is not None:
        return Reference(*known, "the random player", HUMAN)
    random_returns = [mean for run in runs if (mean := run.random_return) is not None]
    best = max(scores, key=lambda agent: float(np.mean(scores[agent])))
    one = float(np.mean(scores[best]))
    if random_returns:
        zero, zero_is = float(np.mean(random_returns)), "random play"
    else:
        zero, zero_is = min(min(own) for own in scores.values()), "the lowest run"
    return Reference(zero, one, zero_is, best) if one > zero else None


def _human(environment: str) -> tuple[float, float] | None:
    game = game_of(environment)
    return (PLAYERS[game].random, PLAYERS[game].human) if game is not None else None
