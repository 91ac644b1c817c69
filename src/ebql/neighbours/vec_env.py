"""A `VecEnv` of Stable-Baselines3 as lanes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from ebql.environments.lanes.limits import LimitExtension, step_limit
from ebql.environments.lanes.vectors import VectorLanes


class VecEnvLanes(VectorLanes):
    """The lanes of a `VecEnv`. The time limits of a `DummyVecEnv` can be extended, whatever wraps it."""

    def __init__(self, environment: VecEnv) -> None:
        super().__init__(_Vector(environment), action_masks=False)
        base = environment.unwrapped
        environments = base.envs if isinstance(base, DummyVecEnv) else []
        self._limit = step_limit(environments) if environments else _limit_of_specs(environment)
        self._extension = LimitExtension(environments)
        self._extends = bool(environments)

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which an episode is truncated; None if unknown."""
        return self._limit

    def extend_limit(self, extra_steps: int) -> bool:
        """Extend the `TimeLimit` by `extra_steps` (0 restores it); return False if that is impossible."""
        self._extension.set(extra_steps)
        return self._extends and self._limit is not None


@contextmanager
def statistics_kept(environment: VecEnv) -> Iterator[None]:
    """Keep the statistics of `VecNormalize` wrappers as they are within the context."""
    wrappers = []
    inner = environment
    while isinstance(inner, VecEnvWrapper):
        if isinstance(inner, VecNormalize):
            wrappers.append((inner, inner.training))
            inner.training = False
        inner = inner.venv
    try:
        yield
    finally:
        for wrapper, was_training in wrappers:
            wrapper.training = was_training


class _Vector(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A `VecEnv` with the interface of Gymnasium's vector environments."""

    def __init__(self, environment: VecEnv) -> None:
        self._environment = environment
        self.num_envs = environment.num_envs
        self.single_observation_space = environment.observation_space
        self.single_action_space = environment.action_space
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[Any, dict[str, Any]]:
        """Reset every environment, the i-th with `seed` + i."""
        if isinstance(seed, int):
            self._environment.seed(seed)
        return self._environment.reset(), {}

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[Any, Any, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Step every environment; those whose episode ends are reset at once."""
        observations, rewards, dones, infos = self._environment.step(actions)
        ended = np.asarray(dones, bool)
        truncated = ended & np.array([bool(info.get("TimeLimit.truncated")) for info in infos])
        final = {"final_obs": [info.get("terminal_observation") for info in infos]} if ended.any() else {}
        return observations, rewards, ended & ~truncated, truncated, final

    def close(self, **_options: Any) -> None:
        """Close the environments."""
        self._environment.close()


def _limit_of_specs(environment: VecEnv) -> int | None:
    """Return the time limit in the specs of the environments, if they agree on one."""
    limits = {getattr(spec, "max_episode_steps", None) for spec in environment.get_attr("spec")}
    return limits.pop() if len(limits) == 1 else None
