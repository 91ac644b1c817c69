"""One scale for the scores of an environment, so that environments can be put together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ebql.analysis.human_scores import PLAYERS, game_of
from ebql.analysis.runs import DeepRun

# ε from which on an agent's training episodes count as random play.
_RANDOM_EPSILON = 0.9


class Reference(NamedTuple):
    """What scores 0 and what scores 1 in an environment, in its own points, and who they are."""

    zero: float
    one: float
    zero_is: str
    one_is: str

    def normalised(self, score: float) -> float:
        """Return a score on the scale of this reference."""
        return (score - self.zero) / (self.one - self.zero)


def reference(
    environment: str,
    runs: Sequence[DeepRun],
    scores: Mapping[str, Sequence[float]],
    *,
    by_human: bool = True,
) -> Reference | None:
    """Return an environment's scale from its runs and each agent's scores; None if nobody beats its zero.

    The paper's Atari games are normalised by the human player, if `by_human`. Elsewhere 0 is random play, as
    measured by the first training episodes of all runs (or the lowest score, where none was logged), and 1
    the best agent's mean.
    """
    if by_human and (known := _human(environment)) is not None:
        return Reference(*known, "the random player", "the human player")
    played = [record for run in runs if (record := _random_play(run)) is not None]
    best = max(scores, key=lambda agent: float(np.mean(scores[agent])))
    one = float(np.mean(scores[best]))
    if played:
        zero, zero_is = float(np.mean(played)), "random play"
    else:
        zero, zero_is = min(min(own) for own in scores.values()), "the lowest run"
    return Reference(zero, one, zero_is, best) if one > zero else None


def _human(environment: str) -> tuple[float, float] | None:
    game = game_of(environment)
    return (PLAYERS[game].random, PLAYERS[game].human) if game is not None else None


def _random_play(run: DeepRun) -> float | None:
    """Return the mean return of a run's first training episodes, if it explored with nearly every step."""
    first = next((record for record in run.records if record.get("return") is not None), None)
    if first is None or first.get("epsilon", 0.0) < _RANDOM_EPSILON:
        return None
    return float(first["return"])
