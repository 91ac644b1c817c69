"""MinAtar's five games, made repeatable."""

from importlib import import_module
from typing import Any

import gymnasium

from ebql.errors import InputError

GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")


class RepeatableMinAtar(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A MinAtar game whose `reset(seed=…)` settles the whole episode.

    MinAtar repeats the last action with probability 0.1, and remembers it across episodes: without this,
    the first step of a seeded episode depends on the episode before it.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start an episode that has no last action."""
        game: Any = self.unwrapped
        game.game.last_action = 0
        return self.env.reset(seed=seed, options=options)


def register() -> None:
    """Make the ids `MinAtar/Breakout-v1` and the like known to Gymnasium."""
    if f"MinAtar/{GAMES[0]}-v1" in gymnasium.registry:
        return
    try:
        games = import_module("minatar.gym")
    except ImportError as error:
        raise InputError('MinAtar is not installed: pip install "ebql[minatar]"') from error
    games.register_envs()


def repeatable(environment: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return `environment`, wrapped if it is a MinAtar game; any other is left as it is."""
    if type(environment.unwrapped).__module__ != "minatar.gym":
        return environment
    return RepeatableMinAtar(environment)
