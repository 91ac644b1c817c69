"""Schedules of learning and exploration rates, by episode and by visit count."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError


@dataclass(frozen=True)
class Schedule:
    """A rate of `scale(episode) * visits ** -power`, at most 1.

    `visits` includes the current visit, so it starts at 1. For ε it counts visits of the state; for α,
    updates of the member's own entry (s, a).

    >>> halved = Schedule(scale=lambda episode: 0.5**episode, power=0.5)  # by episode and by visit
    >>> halved.scales(3).tolist()
    [1.0, 0.5, 0.25]
    """

    scale: float | Callable[[int], float] = 1.0
    """A number, or a function of the episode number, which starts at 0."""
    power: float = 0.0
    """How fast the rate falls with visits; with 0 it does not."""

    def scales(self, episodes: int) -> NDArray[np.float64]:
        """Return the scale of each episode, `(episodes,)`; it may exceed 1 only if `power` is positive."""
        scale = self.scale
        values = [scale(e) for e in range(episodes)] if callable(scale) else [scale] * episodes
        array = np.asarray(values, dtype=np.float64)
        # Negated, so that NaN is refused too.
        if not self.power >= 0:
            raise InputError(f"power must be at least 0, not {self.power}: a rate must not grow with visits.")
        if not np.all((array >= 0) & (array <= (np.inf if self.power else 1))):
            raise InputError("A rate must lie between 0 and 1 in every episode.")
        return array


def inverse_visits(power: float = 1.0) -> Schedule:
    """Return a schedule of 1 / visits ** power.

    >>> from ebql.environments import bandit
    >>> from ebql.tabular import QLearning, learn
    >>> learn(bandit([0.0, 1.0]), QLearning(), episodes=10, epsilon=inverse_visits(0.5)).returns.shape
    (1, 10)
    """
    return Schedule(power=power)


def linear(start: float, end: float, episodes: int) -> Schedule:
    """Return a schedule that goes linearly from `start` to `end` over `episodes` and then stays constant.

    >>> from ebql.environments import bandit
    >>> from ebql.tabular import QLearning, learn
    >>> falling = linear(1.0, 0.1, episodes=5)
    >>> learn(bandit([0.0, 1.0]), QLearning(), episodes=10, epsilon=falling).returns.shape
    (1, 10)
    """
    if episodes < 1:
        raise InputError(f"A linear schedule needs at least one episode, not {episodes}.")
    return Schedule(lambda episode: start + (end - start) * min(1.0, episode / episodes))


def as_schedule(rate: float | Callable[[int], float] | Schedule) -> Schedule:
    """Return a number or a function of the episode as a `Schedule`; return a `Schedule` unchanged."""
    return rate if isinstance(rate, Schedule) else Schedule(rate)
