"""Lanes over single environments, each episode from a seed of its own."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.environments.lanes.interface import Episode, LaneStep, Observations, State
from ebql.environments.lanes.limits import LimitExtension, step_limit
from ebql.environments.lanes.spaces import LaneSpaces
from ebql.errors import InputError

_NO_EPISODES: tuple[Episode, ...] = ()


def episode_seed(seed: int, lane: int, episode: int) -> int:
    """Return the seed, below 2³⁰, of one episode of one lane of the run with this `seed`."""
    words = np.random.SeedSequence(seed, spawn_key=(lane, episode)).generate_state(1)
    return int(words[0]) >> 2


def checked_seed(seed: int) -> int:
    """Return the seed of a run, if it is one."""
    if not 0 <= seed < 2**63:
        raise InputError(f"The seed must lie between 0 and 2⁶³ − 1, not {seed}.")
    return seed


class SeededLanes(LaneSpaces):
    """N single environments; a lane that ends an episode starts the next one within the same step.

    Every episode starts with `reset(seed=…)`, the seed drawn from (run seed, lane, episode number). So a
    lane is brought back by resetting its current episode and taking the same actions again, in any
    environment whose `reset(seed)` settles the whole episode; `restore` notices one that doesn't.
    """

    def __init__(self, environments: Sequence[gymnasium.Env[Any, Any]]) -> None:
        self._environments = list(environments)
        super().__init__(self._environments[0].observation_space, self._environments[0].action_space)
        self._step_limit, self._extension = step_limit(self._environments), LimitExtension(self._environments)
        n = len(self._environments)
        self._shape = (n, *(self._observation_space.shape or ()))
        self._valid = np.ones(n, bool)
        self._valid.flags.writeable = False
        self._seed = 0
        self._episodes = [0] * n
        self._actions: list[list[int]] = [[] for _ in range(n)]
        self._returns = [0.0] * n
        self._observations: Observations = np.zeros(self._shape, self._observation_space.dtype)

    @property
    def n_lanes(self) -> int:
        """The number of lanes N."""
        return len(self._environments)

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which a `TimeLimit` cuts an episode; None if there is no such wrapper."""
        return self._step_limit

    def extend_limit(self, extra_steps: int) -> bool:
        """Let episodes last `extra_steps` beyond their `TimeLimit`; 0 restores it."""
        self._extension.set(extra_steps)
        return self._step_limit is not None

    def reset(self, seed: int) -> Observations:
        """Start episode 0 of every lane in the run with this `seed`; return observations (N, …)."""
        self._seed = checked_seed(seed)
        observations = np.empty(self._shape, self._observation_space.dtype)
        for lane in range(self.n_lanes):
            observations[lane] = self._begin(lane, episode=0)
        self._observations = observations
        return observations

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action a lane, (N,); a lane whose episode ends begins the next one at once."""
        next_observations = np.empty(self._shape, self._observation_space.dtype)
        n = len(next_observations)
        rewards, terminated, truncated = np.empty(n), np.zeros(n, bool), np.zeros(n, bool)
        ended = []
        for lane, action in enumerate(actions.tolist()):
            observation, reward, stop, cut, _ = self._environments[lane].step(action + self._first_action)
            next_observations[lane] = observation
            rewards[lane] = reward
            self._returns[lane] += float(reward)
            self._actions[lane].append(action)
            if stop or cut:
                terminated[lane], truncated[lane] = stop, cut
                ended.append(lane)
        observations, episodes = next_observations, _NO_EPISODES
        if ended:
            observations = next_observations.copy()
            episodes = tuple(self._end(lane, observations) for lane in ended)
        self._observations = observations
        return LaneStep(
            next_observations, rewards, terminated, truncated, self._valid, observations, episodes
        )

    def state(self) -> State:
        """Return the run seed, each lane's episode number, and the actions of that episode so far."""
        return {
            "seed": np.array(self._seed, np.int64),
            "episodes": np.array(self._episodes, np.int64),
            "lengths": np.array([len(actions) for actions in self._actions], np.int64),
            "actions": np.array([action for lane in self._actions for action in lane], np.int64),
            "observations": self._observations.copy(),
        }

    def restore(self, state: State) -> Observations:
        """Replay each lane's current episode from its seed; refuse an environment that strays from it."""
        if len(state["episodes"]) != self.n_lanes:
            raise InputError(f"The state holds {len(state['episodes'])} lanes; here are {self.n_lanes}.")
        self._seed = int(state["seed"])
        observations = np.empty(self._shape, self._observation_space.dtype)
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
        return self._environments[lane].reset(seed=episode_seed(self._seed, lane, episode))[0]

    def _end(self, lane: int, observations: Observations) -> Episode:
        """Report the lane's episode and put the next one's first observation into `observations`."""
        ended = Episode(lane, self._returns[lane], len(self._actions[lane]))
        observations[lane] = self._begin(lane, self._episodes[lane] + 1)
        return ended

    def _replay(self, lane: int, episode: int, actions: list[int]) -> Any:
        observation = self._begin(lane, episode)
        for action in actions:
            observation, reward, *_ = self._environments[lane].step(action + self._first_action)
            self._returns[lane] += float(reward)
        self._actions[lane] = actions
        return observation


def require_same(observations: Observations, saved: Observations) -> None:
    """Raise an `InputError` unless a replay has ended, to the bit, in the observations that were saved."""
    # Bytes and not ==, so that a NaN equals itself.
    if observations.dtype != saved.dtype or observations.tobytes() != saved.tobytes():
        raise InputError(
            "The environment did not come back as it was: its reset(seed=…) does not settle what follows, "
            "or it has changed since the checkpoint."
        )
