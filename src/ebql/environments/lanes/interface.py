"""What an agent sees of its environments: lanes, stepped together."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

Observations = NDArray[Any]
State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Episode:
    """An episode that has ended: its lane, the undiscounted sum of its raw rewards, its agent steps."""

    lane: int
    ret: float
    length: int


class LaneStep(NamedTuple):
    """What one step of N lanes gave: fresh arrays with a leading axis of N, never written to again.

    A named tuple and not a frozen dataclass: one is made at every step, and it costs a third.
    """

    next_observations: Observations
    """What followed the action, (N, …): the last observation of the episode where one has ended."""
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    """Where no value follows for learning; in a game of several lives, play may go on all the same."""
    truncated: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    """False where the step ignored its action and only reset the lane: not a transition."""
    observations: Observations
    """What to act on next, (N, …): the first observation of the next episode where it has begun."""
    episodes: tuple[Episode, ...]
    """The episodes that ended at this step: where `observations` begins anew, and only there."""


class Lanes(Protocol):
    """N environments of one kind, stepped together."""

    @property
    def n_lanes(self) -> int:
        """The number of lanes N."""

    @property
    def observation_space(self) -> Box | Discrete:
        """The space of one lane's observation."""

    @property
    def n_actions(self) -> int:
        """The number of actions: 0, 1, …, n_actions − 1, whatever the environment calls them."""

    @property
    def first_action(self) -> int:
        """What the environment calls action 0; the others follow."""

    @property
    def frames_per_step(self) -> int:
        """Frames of an emulator that one agent step lasts; 1 where there is no such thing."""

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which a time limit cuts an episode; None if no limit is known."""

    def extend_limit(self, extra_steps: int) -> bool:
        """Let episodes last `extra_steps` beyond the limit, 0 to restore it; False if that is impossible."""

    def reset(self, seed: int) -> Observations:
        """Start every lane afresh; equal seeds and equal actions give equal lanes."""

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action a lane, (N,)."""

    def state(self) -> State:
        """Return all that `restore` needs, as arrays."""

    def restore(self, state: State) -> Observations:
        """Bring the lanes back to where `state` was taken, and return what to act on next."""

    def close(self) -> None:
        """Free what the environments hold."""
