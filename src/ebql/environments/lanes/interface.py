"""The interface between agents and environments: lanes that are stepped together."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.environments.lanes.joint_actions import JointActions

Observations = NDArray[Any]
State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Episode:
    """A finished episode.

    >>> from ebql.environments import make_lanes
    >>> lanes = make_lanes("FrozenLake-v1", n_lanes=2)
    >>> _ = lanes.reset(seed=0)
    >>> ended = [episode for _ in range(50) for episode in lanes.step(np.array([1, 2])).episodes]
    >>> ended[0].lane in (0, 1), ended[0].length > 0
    (True, True)
    """

    lane: int
    """Which lane it was played in."""
    ret: float
    """Its undiscounted return, of raw rewards."""
    length: int
    """Its length in agent steps."""


class LaneStep(NamedTuple):
    """The result of one step of N lanes: new arrays with a leading axis of N, never modified later.

    It is a named tuple because one is created at every step; a frozen dataclass takes three times as long.

    >>> from ebql.environments import make_lanes
    >>> lanes = make_lanes("CartPole-v1", n_lanes=2)
    >>> _ = lanes.reset(seed=0)
    >>> step = lanes.step(np.array([0, 1]))
    >>> step.next_observations.shape, step.rewards.tolist(), step.terminated.tolist()
    ((2, 4), [1.0, 1.0], [False, False])
    """

    next_observations: Observations
    """The observations after the action, (N, …); where an episode ended, its last observation."""
    rewards: NDArray[np.float64]
    """The rewards, (N,)."""
    terminated: NDArray[np.bool_]
    """Where learning must not bootstrap; after a lost life the game itself may continue."""
    truncated: NDArray[np.bool_]
    """Where a time limit cut the episode: learning still bootstraps."""
    valid: NDArray[np.bool_]
    """False where the lane rested, or was only reset: the action was ignored, and there is no transition."""
    observations: Observations
    """The observations to act on next, (N, …); where a new episode has begun, its first observation."""
    episodes: tuple[Episode, ...]
    """The episodes that ended at this step."""
    next_masks: NDArray[np.bool_] | None = None
    """The legal actions in the states of `next_observations`, (N, A); None in environments without masks."""


class Lanes(Protocol):
    """N environments of one kind, stepped together.

    `make_lanes` makes them. All that agents see of an environment is this.

    >>> from ebql.environments import make_lanes
    >>> lanes = make_lanes("CartPole-v1", n_lanes=2)
    >>> lanes.reset(seed=0).shape, lanes.n_actions, lanes.step_limit
    ((2, 4), 2, 500)
    """

    @property
    def n_lanes(self) -> int:
        """The number of lanes N."""

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one lane's observation. Structured ones are stored as bytes (`structures.py`)."""

    @property
    def n_actions(self) -> int:
        """The number of actions. Lanes number them 0, 1, …, n_actions − 1."""

    joint_actions: JointActions | None
    """The combinations that actions stand for; None if the action space is Discrete."""

    @property
    def first_action(self) -> int:
        """The environment's own number of action 0; the others follow in order."""

    @property
    def masks(self) -> NDArray[np.bool_] | None:
        """The legal actions in the states to act on next, (N, A); None in environments without masks."""

    @property
    def frames_per_step(self) -> int:
        """Emulator frames per agent step; 1 for environments without an emulator."""

    @property
    def instances(self) -> list[gymnasium.Env[Any, Any]]:
        """The environments that are stepped, without their wrappers, if they are objects in this process."""

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which a time limit truncates an episode; None if no limit is known."""

    def extend_limit(self, extra_steps: int) -> bool:
        """Extend the time limit by `extra_steps` (0 restores it); return False if that is impossible."""

    def reset(self, seed: int) -> Observations:
        """Reset every lane; the same seed and actions give the same steps."""

    def rest(self, resting: NDArray[np.bool_]) -> None:
        """Do not step the `resting` lanes (N,) until the next call or reset; their actions are ignored.

        Lanes that can only be stepped together ignore this call.
        """

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action per lane, (N,)."""

    def state(self) -> State:
        """Return everything that `restore` needs, as arrays."""

    def restore(self, state: State) -> Observations:
        """Restore the lanes to a saved `state`; return the observations to act on next."""

    def close(self) -> None:
        """Close the environments."""
