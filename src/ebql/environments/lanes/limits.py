"""Time limits of Gymnasium's `TimeLimit` wrappers: read them, and extend them for a while."""

from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

Env = gymnasium.Env[Any, Any]


def step_limit(environments: Iterable[Env]) -> int | None:
    """Return the number of steps after which `TimeLimit` wrappers truncate episodes.

    Return None if an environment has no such wrapper, or if the limits differ between environments.
    """
    limits = {_shortest_limit(environment) for environment in environments}
    return limits.pop() if len(limits) == 1 else None


class LimitExtension:
    """Extends the `TimeLimit` of environments, and restores it."""

    def __init__(self, environments: Iterable[Env]) -> None:
        self._wrappers = [
            (wrapper, wrapper._max_episode_steps) for env in environments for wrapper in _limit_wrappers(env)
        ]

    def set(self, extra_steps: int) -> None:
        """Let episodes last `extra_steps` beyond their original limit; 0 restores it."""
        for wrapper, limit in self._wrappers:
            wrapper._max_episode_steps = limit + extra_steps


def _shortest_limit(environment: Env) -> int | None:
    return min((wrapper._max_episode_steps for wrapper in _limit_wrappers(environment)), default=None)


def _limit_wrappers(environment: Env) -> Iterator["TimeLimit[Any, Any]"]:
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, TimeLimit):
            yield environment
        environment = environment.env
