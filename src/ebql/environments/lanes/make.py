"""Make lanes from an id, an environment, a function that makes one, or a vector environment.

All lanes follow the same two rules. A transition is well defined: truncation is not termination, the last
observation of an episode is kept apart from the first one of the next, and a step that only resets a lane
is marked invalid. And most environments cannot save their state, so lanes are restored bit for bit by a
seeded reset and a replay of the actions.
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
    environment: Environment,
    n_lanes: int = 1,
    *,
    protocol: AtariProtocol = PROTOCOLS["paper"],
    action_masks: bool = True,
) -> Lanes:
    """Return lanes for an environment id, an `Env`, a function that makes one, or a `VectorEnv`.

    An id or a function is used to make `n_lanes` environments. An `Env` is one lane, and a `VectorEnv` has
    its own number of lanes. `protocol` applies to Atari games given by id. Without `action_masks`, masks that
    environments give are ignored.

    >>> lanes = make_lanes("CartPole-v1", n_lanes=4)
    >>> lanes.reset(seed=0).shape, lanes.step(np.zeros(4, dtype=int)).rewards.shape
    ((4, 4), (4,))
    """
    _check_count(n_lanes)
    if isinstance(environment, gymnasium.vector.VectorEnv):
        if n_lanes not in (1, environment.num_envs):
            raise InputError(
                f"This vector environment has {environment.num_envs} copies, not {n_lanes}: set envs to "
                f"{environment.num_envs}."
            )
        return VectorLanes(environment, action_masks=action_masks)
    if isinstance(environment, gymnasium.Env):
        if n_lanes > 1:
            raise InputError(
                f"An environment instance can be used once; to run {n_lanes} copies, pass its id or a "
                "function that makes it."
            )
        return SeededLanes([repeatable(environment)], action_masks=action_masks)
    if isinstance(environment, str):
        if is_atari(name := canonical_name(environment)):
            return AtariLanes(name, n_lanes, protocol)
        made = [make_environment(environment) for _ in range(n_lanes)]
        return SeededLanes(made, action_masks=action_masks)
    if callable(environment):
        made = [repeatable(_made_by(environment)) for _ in range(n_lanes)]
        return SeededLanes(made, action_masks=action_masks)
    raise InputTypeError(
        "An environment must be an id, a gymnasium Env, a function that makes one, or a gymnasium VectorEnv, "
        f"not {environment!r}."
    )


def _check_count(n_lanes: int) -> None:
    if isinstance(n_lanes, bool) or not isinstance(n_lanes, int | np.integer):
        raise InputTypeError(f"The number of lanes must be an integer, not {n_lanes!r}.")
    if n_lanes < 1:
        raise InputError(f"The number of lanes must be at least 1, not {n_lanes}.")


def _made_by(make: Callable[[], Env]) -> Env:
    environment = make()
    if not isinstance(environment, gymnasium.Env):
        raise InputTypeError(f"The function must return a gymnasium Env, not {environment!r}.")
    return environment
