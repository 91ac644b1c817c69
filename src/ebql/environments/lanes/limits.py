"""Time limits: where Gymnasium's `TimeLimit` wrappers cut an episode, and how to let it run on."""

from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit

Env = gymnasium.Env[Any, Any]


def step_limit(environments: Iterable[Env]) -> int | None:
    """Return the steps after which `TimeLimit` wrappers cut episodes.

    None if an environment has no such wrapper, or if two environments differ.
    """
    limits = {_lowest(environment) for environment in environments}
    return limits.pop() if len(limits) == 1 else None


class LimitExtension:
    """Moves the `TimeLimit` of environments and puts it back."""

    def __init__(self, environments: Iterable[Env]) -> None:
        self._wrappers = [
            (wrapper, wrapper._max_episode_steps) for env in environments for wrapper in _limits(env)
        ]

    def set(self, extra_steps: int) -> None:
        """Let episodes last `extra_steps` beyond their own limit; 0 restores it."""
        for wrapper, own in self._wrappers:
            wrapper._max_episode_steps = own + extra_steps


def _lowest(environment: Env) -> int | None:
    return min((wrapper._max_episode_steps for wrapper in _limits(environment)), default=None)


def _limits(environment: Env) -> Iterator["TimeLimit[Any, Any]"]:
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, TimeLimit):
            yield environment
        environment = environment.env
