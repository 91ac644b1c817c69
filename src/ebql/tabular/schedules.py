"""Step sizes and exploration rates: how they fall with episodes and with visits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError


@dataclass(frozen=True)
class Schedule:
    """A rate that equals `scale(episode) * visits ** -power`, capped at 1.

    `visits` counts the present visit, so it starts at 1: of the state for ε, of the member's own entry
    (s, a) for α. `scale` is a number, or a function of the episode number, counted from 0.
    """

    scale: float | Callable[[int], float] = 1.0
    power: float = 0.0

    def scales(self, episodes: int) -> NDArray[np.float64]:
        """The scale of each episode, `(episodes,)`; above 1 only where visits bring the rate down."""
        scale = self.scale
        values = [scale(e) for e in range(episodes)] if callable(scale) else [scale] * episodes
        array = np.asarray(values, dtype=np.float64)
        # Negated, so that NaN is refused too.
        if not self.power >= 0:
            raise InputError(f"A rate must not grow with visits: power {self.power} is negative.")
        if not np.all((array >= 0) & (array <= (np.inf if self.power else 1))):
            raise InputError("A rate must lie between 0 and 1 in every episode.")
        return array


def inverse_visits(power: float = 1.0) -> Schedule:
    """A rate of 1 / visits ** power."""
    return Schedule(power=power)


def linear(start: float, end: float, episodes: int) -> Schedule:
    """A rate that goes from `start` to `end` over the first `episodes`, and stays there."""
    if episodes < 1:
        raise InputError(f"a linear schedule needs at least one episode, not {episodes}.")
    return Schedule(lambda episode: start + (end - start) * min(1.0, episode / episodes))


def as_schedule(rate: float | Callable[[int], float] | Schedule) -> Schedule:
    """A number or a function of the episode as a `Schedule`; a `Schedule` as it is."""
    return rate if isinstance(rate, Schedule) else Schedule(rate)
