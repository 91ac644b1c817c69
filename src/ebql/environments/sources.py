"""Environments as a user gives them: what they are called, whether two are one, and how to make one more."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import gymnasium

from ebql.environments.atari.games import canonical_name
from ebql.environments.lanes.make import Environment


def canonical(environment: Environment) -> Environment:
    """Return the id of an Atari game given by a short name, and anything else as it is."""
    return canonical_name(environment) if isinstance(environment, str) else environment


def id_of(environment: Environment) -> str | None:
    """Return an environment's id; None if nobody registered it."""
    if isinstance(environment, str):
        return environment
    spec = getattr(environment, "spec", None)
    return None if spec is None else spec.id


def is_same(first: Environment | None, second: Environment | None) -> bool:
    """Whether both are one environment object, wrappers apart."""
    objects = gymnasium.Env | gymnasium.vector.VectorEnv
    if not isinstance(first, objects) or not isinstance(second, objects):
        return False
    return first.unwrapped is second.unwrapped


def maker_of_more(environment: Environment) -> Callable[[], gymnasium.Env[Any, Any]] | None:
    """Return what makes one more environment like this one; None if its spec doesn't say how.

    The spec of a vector environment says nothing of wrappers around its lanes or around itself.
    """
    if isinstance(environment, gymnasium.vector.VectorWrapper):
        return None
    if not isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv) or environment.spec is None:
        return None
    spec = deepcopy(environment.spec)
    if isinstance(environment, gymnasium.Env):
        spaces = environment.observation_space, environment.action_space
    else:
        spaces = environment.single_observation_space, environment.single_action_space
        if spec.kwargs.get("wrappers"):
            return None
        for name in ("num_envs", "vectorization_mode", "vector_kwargs"):
            spec.kwargs.pop(name, None)
        spec.max_episode_steps = spec.kwargs.pop("max_episode_steps", spec.max_episode_steps)
    try:
        another = gymnasium.make(spec)
    except Exception:  # whatever a constructor of the user's raises
        return None
    another.close()
    if (another.observation_space, another.action_space) != spaces:
        return None
    return lambda: gymnasium.make(spec)
