"""Environments side by side: every agent steps `Lanes`, whether one environment or many lie behind them.

Two things are settled here, once. What a transition is: truncation is not termination, the last
observation of an episode is never mixed up with the first of the next one, and a step that only reset
a lane is marked as no transition at all. And how an environment that can't save its state is brought
back to the bit: by a seeded reset and the same actions again.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from ebql.environments.atari.games import PROTOCOLS, AtariProtocol, canonical_name, is_atari
from ebql.environments.atari.lanes import AtariLanes
from ebql.environments.lanes.interface import Episode, Lanes, LaneStep
from ebql.environments.lanes.seeded import SeededLanes
from ebql.environments.lanes.vectors import VectorLanes
from ebql.environments.make import make_environment
from ebql.environments.minatar import repeatable
from ebql.errors import InputError, InputTypeError

__all__ = ["Environment", "Episode", "LaneStep", "Lanes", "SeededLanes", "VectorLanes", "make_lanes"]

Env = gymnasium.Env[Any, Any]
Environment = str | Env | Callable[[], Env] | gymnasium.vector.VectorEnv[Any, Any, Any]


def make_lanes(
    environment: Environment, n_lanes: int = 1, *, protocol: AtariProtocol = PROTOCOLS["paper"]
) -> Lanes:
    """Return lanes over an environment's id, an `Env`, a function that makes one, or a `VectorEnv`.

    An id or a function gives `n_lanes` environments, an `Env` is one lane, and a `VectorEnv` brings its
    own number of lanes. The id of an Atari game is played by the `protocol`.
    """
    _check_count(n_lanes)
    if isinstance(environment, gymnasium.vector.VectorEnv):
        if n_lanes not in (1, environment.num_envs):
            raise InputError(f"This vector environment has {environment.num_envs} lanes, not {n_lanes}.")
        return VectorLanes(environment)
    if isinstance(environment, gymnasium.Env):
        if n_lanes > 1:
            raise InputError(
                f"One environment object is one lane; for {n_lanes} give its id or a function that makes it."
            )
        return SeededLanes([repeatable(environment)])
    if isinstance(environment, str):
        if is_atari(name := canonical_name(environment)):
            return AtariLanes(name, n_lanes, protocol)
        return SeededLanes([make_environment(environment) for _ in range(n_lanes)])
    if callable(environment):
        return SeededLanes([repeatable(_called(environment)) for _ in range(n_lanes)])
    raise InputTypeError(
        "An environment is an id, a gymnasium Env, a function that makes one, or a gymnasium VectorEnv, "
        f"not {environment!r}."
    )


def _check_count(n_lanes: int) -> None:
    if isinstance(n_lanes, bool) or not isinstance(n_lanes, int | np.integer):
        raise InputTypeError(f"The number of lanes must be an integer, not {n_lanes!r}.")
    if n_lanes < 1:
        raise InputError(f"The number of lanes must be at least 1, not {n_lanes}.")


def _called(make: Callable[[], Env]) -> Env:
    environment = make()
    if not isinstance(environment, gymnasium.Env):
        raise InputTypeError(f"The function must return a gymnasium Env, not {environment!r}.")
    return environment
