"""Lanes of single environments; each episode has its own seed."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.environments.lanes.interface import Episode, LaneStep, Observations, State
from ebql.environments.lanes.limits import LimitExtension, step_limit
from ebql.environments.lanes.spaces import LaneSpaces, Masks
from ebql.environments.masks import MaskReader
from ebql.errors import InputError

_NO_EPISODES: tuple[Episode, ...] = ()


def episode_seed(seed: int, lane: int, episode: int) -> int:
    """Return the seed (below 2³⁰) of an episode of a lane; `seed` is the run's."""
    words = np.random.SeedSequence(seed, spawn_key=(lane, episode)).generate_state(1)
    return int(words[0]) >> 2


def checked_seed(seed: int) -> int:
    """Return `seed` if it is valid for a run; raise an error otherwise."""
    if not 0 <= seed < 2**63:
        raise InputError(f"The seed must lie between 0 and 2⁶³ − 1, not {seed}.")
    return seed


class SeededLanes(LaneSpaces):
    """N single environments; a lane whose episode ends starts the next one within the same step.

    Every episode starts with `reset(seed=…)`; its seed is derived from (run seed, lane, episode number).
    `restore` resets the current episode of each lane and replays its actions. This works for every
    environment in which `reset(seed=…)` controls all randomness of the episode; `restore` raises an error if
    the observations do not recur.
    """

    def __init__(self, environments: Sequence[gymnasium.Env[Any, Any]], *, action_masks: bool = True) -> None:
        self._environments = list(environments)
        super().__init__(self._environments[0].observation_space, self._environments[0].action_space)
        self._require_one_each("The function returned the same environment twice")
        readers = [
            MaskReader(environment, self._n_actions, self.joint_actions) for environment in self._environments
        ]
        self._readers = readers if action_masks else []
        self._step_limit, self._extension = step_limit(self._environments), LimitExtension(self._environments)
        n = len(self._environments)
        self._shape = (n, *self._stored_shape)
        self.rest(np.zeros(n, bool))
        self._seed = 0
        self._episodes = [0] * n
        self._actions: list[list[int]] = [[] for _ in range(n)]
        self._returns = [0.0] * n
        self._observations: Observations = np.zeros(self._shape, self._stored_dtype)

    @property
    def instances(self) -> list[gymnasium.Env[Any, Any]]:
        """The environments that are stepped, without their wrappers."""
        return [environment.unwrapped for environment in self._environments]

    @property
    def n_lanes(self) -> int:
        """The number of lanes N."""
        return len(self._environments)

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which a `TimeLimit` truncates an episode; None if there is no such wrapper."""
        return self._step_limit

    def extend_limit(self, extra_steps: int) -> bool:
        """Extend the `TimeLimit` by `extra_steps` (0 restores it); return False if there is none."""
        self._extension.set(extra_steps)
        return self._step_limit is not None

    def reset(self, seed: int) -> Observations:
        """Start episode 0 of every lane; `seed` is the run's. Return observations (N, …)."""
        self._seed = checked_seed(seed)
        self.rest(np.zeros(self.n_lanes, bool))
        observations = np.empty(self._shape, self._stored_dtype)
        self._masks = None
        for lane in range(self.n_lanes):
            observations[lane] = self._begin(lane, episode=0)
        self._observations = observations
        return observations

    def rest(self, resting: Masks) -> None:
        """Do not step the `resting` lanes (N,) until the next call or reset."""
        self._resting: list[bool] = resting.tolist()
        self._valid = ~resting
        self._valid.flags.writeable = False

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action per lane, (N,); a lane whose episode ends starts the next one in the same step."""
        next_observations = np.empty(self._shape, self._stored_dtype)
        n = len(next_observations)
        rewards, terminated, truncated = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
        ended = []
        next_masks = None if self._masks is None else np.ones_like(self._masks)
        for lane, action in enumerate(actions.tolist()):
            if self._resting[lane]:
                next_observations[lane] = self._observations[lane]
                if next_masks is not None and self._masks is not None:
                    next_masks[lane] = self._masks[lane]
                continue
            observation, reward, done, cut, info = self._environments[lane].step(self.own_action(action))
            next_observations[lane] = self._as_stored(observation)
            if next_masks is not None and not done:
                next_masks[lane] = self._readers[lane].next(info)
            rewards[lane] = reward
            self._returns[lane] += float(reward)
            self._actions[lane].append(action)
            if done or cut:
                terminated[lane], truncated[lane] = done, cut
                ended.append(lane)
        observations, episodes, self._masks = next_observations, _NO_EPISODES, next_masks
        if ended:
            observations = next_observations.copy()
            self._masks = None if next_masks is None else next_masks.copy()
            episodes = tuple(self._end(lane, observations) for lane in ended)
        self._observations = observations
        return LaneStep(
            next_observations, rewards, terminated, truncated, self._valid, observations, episodes, next_masks
        )

    def state(self) -> State:
        """Return the run seed, and the number and actions so far of each lane's current episode."""
        return {
            "seed": np.array(self._seed, np.int64),
            "episodes": np.array(self._episodes, np.int64),
            "lengths": np.array([len(actions) for actions in self._actions], np.int64),
            "actions": np.array([action for lane in self._actions for action in lane], np.int64),
            "observations": self._observations.copy(),
        }

    def restore(self, state: State) -> Observations:
        """Replay each lane's current episode; raise an error if the saved observations do not recur."""
        if len(state["episodes"]) != self.n_lanes:
            raise InputError(
                f"The saved state has {len(state['episodes'])} lanes, but there are {self.n_lanes} here."
            )
        self._seed = int(state["seed"])
        observations = np.empty(self._shape, self._stored_dtype)
        lane_actions = np.split(state["actions"], np.cumsum(state["lengths"])[:-1])
        for lane, actions in enumerate(lane_actions):
            observations[lane] = self._replay(lane, int(state["episodes"][lane]), actions.tolist())
        require_same(observations, state["observations"])
        self._observations = observations
        return observations

    def close(self) -> None:
        """Close every environment."""
        for environment in self._environments:
            environment.close()

    def _begin(self, lane: int, episode: int) -> Any:
        self._episodes[lane] = episode
        self._actions[lane] = []
        self._returns[lane] = 0.0
        observation, info = self._environments[lane].reset(seed=episode_seed(self._seed, lane, episode))
        if self._readers:
            self._set_mask(lane, self._readers[lane].first(info))
        return self._as_stored(observation)

    def _set_mask(self, lane: int, mask: Masks | None) -> None:
        """Note the legal actions of a lane's current state, (A,); masks exist once a reset has given one.

        After a later reset without one, all actions are legal.
        """
        if mask is not None and self._masks is None:
            self._masks = np.ones((self.n_lanes, self._n_actions), bool)
        if self._masks is not None:
            self._masks[lane] = True if mask is None else mask

    def _end(self, lane: int, observations: Observations) -> Episode:
        """Return the lane's finished episode; write the first observation of the next to `observations`."""
        ended = Episode(lane, self._returns[lane], len(self._actions[lane]))
        observations[lane] = self._begin(lane, self._episodes[lane] + 1)
        return ended

    def _replay(self, lane: int, episode: int, actions: list[int]) -> Any:
        observation = self._begin(lane, episode)
        for action in actions:
            observation, reward, _, _, info = self._environments[lane].step(self.own_action(action))
            self._returns[lane] += float(reward)
        if actions:
            observation = self._as_stored(observation)
            if self._masks is not None:
                self._set_mask(lane, self._readers[lane].next(info))
        self._actions[lane] = actions
        return observation


def require_same(observations: Observations, saved: Observations) -> None:
    """Raise an error unless a replay has reproduced the saved observations bit for bit."""
    # Bytes are compared, so that a NaN equals itself.
    if observations.dtype != saved.dtype or observations.tobytes() != saved.tobytes():
        raise InputError(
            "The environment cannot be restored: its reset(seed=…) does not control all its randomness, "
            "or the environment has changed since the checkpoint."
        )
