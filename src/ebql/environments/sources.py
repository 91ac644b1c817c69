"""Environments as passed by the user: their ids, their identity, and how to make another instance."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeGuard

import gymnasium

from ebql.environments.atari.games import canonical_name
from ebql.environments.lanes.make import Environment
from ebql.environments.modules import import_module_of


def given(environment: Environment) -> Environment:
    """Return an environment that the user passed, with the short name of an Atari game as its id.

    If it is an id that names a module, the module is imported. Do not call this with an id from a file.
    """
    if not isinstance(environment, str):
        return environment
    import_module_of(environment)
    return canonical_name(environment)


def id_of(environment: Environment) -> str | None:
    """Return the id of an environment; None if it is not registered."""
    if isinstance(environment, str):
        return environment
    # A class that makes environments has a spec, too: a property without an id.
    return getattr(getattr(environment, "spec", None), "id", None)


def is_object(
    environment: Environment | None,
) -> TypeGuard["gymnasium.Env[Any, Any] | gymnasium.vector.VectorEnv[Any, Any, Any]"]:
    """Return whether it is an environment, and no id or function that makes one."""
    return isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv)


def is_same(first: Environment | None, second: Environment | None) -> bool:
    """Return whether both are the same environment instance, apart from wrappers."""
    if not is_object(first) or not is_object(second):
        return False
    return first.unwrapped is second.unwrapped


def another_factory(environment: Environment) -> Callable[[], gymnasium.Env[Any, Any]] | None:
    """Return a function that makes another environment like this instance; None if there is no way.

    It makes one from the instance's spec, or else copies the instance as it is now.
    """
    factory = environment_factory(environment)
    if factory is not None or not isinstance(environment, gymnasium.Env):
        return factory
    try:
        kept = deepcopy(environment)
    except Exception:  # a user's environment can hold anything, such as a window or a socket
        return None
    return lambda: deepcopy(kept)


def environment_factory(environment: Environment) -> Callable[[], gymnasium.Env[Any, Any]] | None:
    """Return a function that makes another instance of this environment; None if its spec is not enough.

    The spec of a vector environment does not include wrappers of the vector environment or of its lanes.
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
        instance = gymnasium.make(spec)
    except Exception:  # a user's constructor can raise anything
        return None
    instance.close()
    if (instance.observation_space, instance.action_space) != spaces:
        return None
    return lambda: gymnasium.make(spec)
