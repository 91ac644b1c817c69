"""MinAtar's five games, wrapped so that a seed reproduces an episode."""

from importlib import import_module
from typing import Any

import gymnasium

from ebql.errors import InputError

GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")


class RepeatableMinAtar(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A MinAtar game in which `reset(seed=…)` controls all randomness of the episode.

    MinAtar repeats the last action with probability 0.1 and keeps the last action across episodes. Without
    this wrapper, the first step of a seeded episode would depend on the previous episode.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start an episode without a last action."""
        game: Any = self.unwrapped
        game.game.last_action = 0
        return self.env.reset(seed=seed, options=options)


def register() -> None:
    """Register `MinAtar/Breakout-v1` and the other ids with Gymnasium."""
    if f"MinAtar/{GAMES[0]}-v1" in gymnasium.registry:
        return
    try:
        games = import_module("minatar.gym")
    except ImportError as error:
        raise InputError('MinAtar is not installed: pip install "ebql[minatar]"') from error
    games.register_envs()


def repeatable(environment: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Wrap a MinAtar game in `RepeatableMinAtar`; return any other environment unchanged."""
    if type(environment.unwrapped).__module__ != "minatar.gym":
        return environment
    return RepeatableMinAtar(environment)
