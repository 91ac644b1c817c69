"""Make environments by id."""

from typing import Any

import gymnasium
from gymnasium.error import DependencyNotInstalled

from ebql.environments import minatar
from ebql.environments.atari.games import PAPER_GAMES, canonical_name, is_atari, nearest_games
from ebql.environments.atari.single import AtariGame
from ebql.environments.modules import module_of, require_imported
from ebql.errors import InputError, unknown_name

_CLASSIC = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "LunarLander-v3")
_TOY_TEXT = ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "Taxi-v3", "Taxi-v4")


def known_environments() -> dict[str, tuple[str, ...]]:
    """Return the ids that agents are tested on, by family; other Gymnasium ids may work too.

    >>> "CartPole-v1" in known_environments()["classic"]
    True
    """
    return {
        "classic": _registered(_CLASSIC),
        "minatar": tuple(f"MinAtar/{game}-v1" for game in minatar.GAMES),
        "atari": tuple(f"ALE/{game}-v5" for game in PAPER_GAMES),
        "toy text": _registered(_TOY_TEXT),
        "ebql": tuple(sorted(name for name in gymnasium.registry if name.startswith("ebql/"))),
    }


def make_environment(name: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Make the environment with this id; `options` (such as a render mode) are passed to its constructor.

    As in Gymnasium, an id may name the module that registers it: `module:Name-v0`. The module must have been
    imported before, because the id may come from a file (`ebql.environments.modules`).

    >>> make_environment("CartPole-v1").action_space
    Discrete(2)
    """
    name = canonical_name(name)
    if is_atari(name):
        return AtariGame(name, **options)
    if name.startswith("MinAtar/"):
        minatar.register()
    if name not in gymnasium.registry and module_of(name) is None:
        raise _unknown(name)
    require_imported(name)
    try:
        environment = gymnasium.make(name, disable_env_checker=True, **options)
    except (DependencyNotInstalled, ModuleNotFoundError) as error:
        if "box2d" in str(error).lower():
            # Gymnasium's own advice brings pygame-ce, which overwrites pygame.
            raise InputError(f'{name} needs Box2D: pip install "ebql[box2d]"') from error
        raise InputError(f"Environment {name!r} needs a package that is missing: {error}") from error
    except gymnasium.error.UnregisteredEnv as error:
        raise _unknown(name) from error
    return minatar.repeatable(environment)


def _registered(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name in gymnasium.registry)


def _unknown(name: str) -> InputError:
    known = [known for family in known_environments().values() for known in family]
    similar = [repr(other) for other in known if name.lower() in other.lower()]
    if similar:
        return InputError(f"Unknown environment {name!r}. Did you mean {' or '.join(similar)}?")
    if games := nearest_games(name):
        return InputError(f"Unknown environment {name!r}. Did you mean {' or '.join(games)}?")
    return unknown_name("environment", name, known)
