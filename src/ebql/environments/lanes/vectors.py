"""Lanes of a Gymnasium vector environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from ebql.environments.lanes.interface import Episode, LaneStep, Observations, State
from ebql.environments.lanes.seeded import checked_seed, episode_seed, require_same
from ebql.environments.lanes.spaces import LaneSpaces, Masks
from ebql.environments.masks import checked_mask
from ebql.errors import InputError, RunError


class VectorLanes(LaneSpaces):
    """The lanes of a Gymnasium `VectorEnv` with NEXT_STEP or SAME_STEP autoreset.

    With NEXT_STEP autoreset, the step after the end of an episode ignores the action and only resets the
    lane. `valid` is False for that step; before it, `observations` holds the last observation of the
    episode. With SAME_STEP autoreset, the last observation comes from `info["final_obs"]`.

    A vector environment cannot be seeded for each episode. `restore` therefore replays every action since
    the seeded reset, as many steps as the run has made. The log of actions takes one byte per step and lane
    (up to 256 actions). Lanes made from an id or a function replay only their current episodes.

    Action masks are those of `info["action_mask"]`, (N, A).
    """

    _observations: Observations
    _resetting: NDArray[np.bool_]

    def __init__(
        self, environment: "gymnasium.vector.VectorEnv[Any, Any, Any]", *, action_masks: bool = True
    ) -> None:
        self._environment, self._reads_masks = environment, action_masks
        super().__init__(environment.single_observation_space, environment.single_action_space)
        self._require_one_each("A function of the vector environment returned the same environment again")
        self._same_step = _resets_in_same_step(environment)
        self._begin(seed=0)

    @property
    def instances(self) -> list[gymnasium.Env[Any, Any]]:
        """The environments that a `SyncVectorEnv` steps, without their wrappers; others are not known."""
        vector = self._environment.unwrapped
        return [each.unwrapped for each in vector.envs] if isinstance(vector, SyncVectorEnv) else []

    @property
    def n_lanes(self) -> int:
        """The number of lanes N."""
        return self._environment.num_envs

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which an episode is truncated, from the environment's spec; None if unknown."""
        spec = self._environment.spec
        return None if spec is None else spec.kwargs.get("max_episode_steps", spec.max_episode_steps)

    def reset(self, seed: int) -> Observations:
        """Reset every lane; `seed` is the run's. Return observations (N, …)."""
        self._begin(checked_seed(seed))
        # Vector environments seed lane i with seed + i, so runs with consecutive seeds would share lanes.
        observations, info = self._environment.reset(seed=episode_seed(seed, 0, 0))
        self._observations = self._rows_as_stored(observations)
        if self._reads_masks and "action_mask" in info:
            self._masks = np.stack(
                [checked_mask(mask, self._n_actions, self.joint_actions) for mask in info["action_mask"]]
            )
        return self._observations

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action per lane, (N,)."""
        # Some vector environments hang on an invalid action.
        if ((actions < 0) | (actions >= self._n_actions)).any():
            raise InputError(f"Actions must lie between 0 and {self._n_actions - 1}, not {actions.tolist()}.")
        self._log.append(actions)
        observed, rewards, terminated, truncated, info = self._environment.step(self.own_action(actions))
        # A copy, because an environment may return its own buffer.
        observations = self._rows_as_stored(observed)
        valid = ~self._resetting
        rewards = np.where(valid, rewards, 0.0)
        ended = terminated | truncated
        next_observations = observations
        if self._same_step:
            if ended.any():
                next_observations = self._with_final_observations(observations, ended, info)
        else:
            self._resetting = ended.copy()
        next_masks = None
        if self._masks is not None:
            next_masks = self._read_masks(info, np.asarray(terminated, bool), ended)
        self._returns += rewards
        self._lengths += valid
        self._observations = observations
        return LaneStep(
            next_observations,
            rewards,
            np.array(terminated, bool),
            np.array(truncated, bool),
            valid,
            observations,
            self._finish(ended),
            next_masks,
        )

    def _read_masks(self, info: dict[str, Any], terminated: Masks, ended: Masks) -> Masks:
        """Set the masks to act on next; return those of the states after the action, all-true at an end."""
        self._masks = np.ones((self.n_lanes, self._n_actions), bool)
        for lane in range(self.n_lanes):
            if self._same_step or not terminated[lane]:
                self._masks[lane] = checked_mask(_of_lane(info, lane), self._n_actions, self.joint_actions)
        next_masks = self._masks.copy()
        if self._same_step:
            for lane in np.flatnonzero(ended).tolist():
                final = _of_lane(info.get("final_info", {}), lane)
                next_masks[lane] = (
                    True if terminated[lane] else checked_mask(final, self._n_actions, self.joint_actions)
                )
        return next_masks

    def _with_final_observations(
        self, observations: Observations, ended: NDArray[np.bool_], info: dict[str, Any]
    ) -> Observations:
        """Return `observations` with the last observation of the episode in every lane that has `ended`."""
        if "final_obs" not in info:
            raise InputError(
                "The vector environment has SAME_STEP autoreset but no info['final_obs'], so it loses the "
                "last observation of an episode: use NEXT_STEP autoreset."
            )
        final = observations.copy()
        for lane in np.flatnonzero(ended).tolist():
            final[lane] = self._as_stored(_at(info["final_obs"], lane))
        return final

    def state(self) -> State:
        """Return the run seed, every action since the reset (T, N), and the current observations."""
        return {
            "seed": np.array(self._seed, np.int64),
            "actions": self._log.actions().copy(),
            "observations": self._observations.copy(),
        }

    def restore(self, state: State) -> Observations:
        """Replay every action since the reset; raise an error if the saved observations do not recur."""
        actions = state["actions"]
        if actions.shape[1] != self.n_lanes:
            raise InputError(
                f"The saved state has {actions.shape[1]} lanes, but there are {self.n_lanes} here."
            )
        self.reset(int(state["seed"]))
        for row in actions:
            self.step(row.astype(np.int64))
        require_same(self._observations, state["observations"])
        return self._observations

    def close(self) -> None:
        """Close the vector environment."""
        self._environment.close()

    def _begin(self, seed: int) -> None:
        self._seed = seed
        self._log = _ActionLog(self.n_lanes, self._n_actions)
        self._observations = np.zeros(0)
        self._masks = None
        self._resetting = np.zeros(self.n_lanes, bool)
        self._returns = np.zeros(self.n_lanes)
        self._lengths = np.zeros(self.n_lanes, np.int64)

    def _finish(self, ended: NDArray[np.bool_]) -> tuple[Episode, ...]:
        """Return the episodes of the `ended` lanes, and start counting anew there."""
        lanes = np.flatnonzero(ended)
        if not len(lanes):
            return ()
        episodes = tuple(Episode(int(i), float(self._returns[i]), int(self._lengths[i])) for i in lanes)
        self._returns[lanes] = 0.0
        self._lengths[lanes] = 0
        return episodes


class _ActionLog:
    """Every action of every lane, (T, N), in the smallest sufficient integer type."""

    def __init__(self, n_lanes: int, n_actions: int) -> None:
        self._rows = np.empty((1024, n_lanes), np.min_scalar_type(n_actions - 1))
        self._length = 0

    def append(self, actions: NDArray[np.integer[Any]]) -> None:
        if self._length == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[self._length] = actions
        self._length += 1

    def actions(self) -> NDArray[Any]:
        return self._rows[: self._length]


def _of_lane(info: dict[str, Any], lane: int) -> Any:
    """Return the mask that a vector environment's `info` has for a lane."""
    if "action_mask" not in info:
        raise RunError("The environment gave no action mask, although it gave one at its first reset.")
    return info["action_mask"][lane]


def _at(nested: Any, lane: int) -> Any:
    """Return a lane's part of arrays with an axis of N, nested in dictionaries."""
    if isinstance(nested, dict):
        return {key: _at(value, lane) for key, value in nested.items() if not key.startswith("_")}
    return nested[lane]


def _resets_in_same_step(environment: "gymnasium.vector.VectorEnv[Any, Any, Any]") -> bool:
    """Return True for SAME_STEP and False for NEXT_STEP autoreset; raise an error otherwise."""
    mode = environment.metadata.get("autoreset_mode")
    if mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        name = mode.name if isinstance(mode, AutoresetMode) else mode
        raise InputError(
            "The vector environment must reset its own environments: its metadata['autoreset_mode'] must be "
            f"NEXT_STEP or SAME_STEP, not {name}."
        )
    return bool(mode == AutoresetMode.SAME_STEP)
