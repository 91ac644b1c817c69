"""From steps of lanes to the transitions that are learnt from."""

from collections import deque
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.environments import LaneStep

Array = NDArray[Any]


class Columns(NamedTuple):
    """Transitions (s, a, Σ γⁱ r, discount, s′), one a row."""

    observations: Array
    actions: Array
    rewards: Array
    discounts: Array
    next_observations: Array


class Waiting(NamedTuple):
    """A step whose n-th successor hasn't come yet."""

    observation: Array
    action: int
    reward: float


class NStep:
    """Sums each lane's next n rewards; an episode's end gives shorter sums, never ones across it.

    The discount of a transition over m steps is γᵐ, or 0 if the episode terminated within them; after a
    truncation, its last observation is bootstrapped from. At most n − 1 steps a lane lie in wait.
    """

    def __init__(self, n_step: int, discount: float, n_lanes: int) -> None:
        self._n_step, self._discount = n_step, discount
        self._waiting: list[deque[Waiting]] = [deque() for _ in range(n_lanes)]

    def __len__(self) -> int:
        """The steps that lie in wait, over all lanes."""
        return sum(len(lane) for lane in self._waiting)

    def push(self, observations: Array, actions: Array, rewards: Array, taken: LaneStep) -> Columns:
        """Take the step that followed `actions` (N,) on `observations` (N, …); return what it completes.

        `rewards` (N,) are those to learn from. Lanes that were only reset give nothing.
        """
        if self._n_step == 1:
            discounts = np.where(taken.terminated, 0.0, self._discount)
            columns = Columns(observations, actions, rewards, discounts, taken.next_observations)
            if np.count_nonzero(taken.valid) == len(actions):
                return columns
            return Columns(*(column[taken.valid] for column in columns))
        completed: list[tuple[Array, int, float, float, Array]] = []
        for lane in np.flatnonzero(taken.valid):
            waiting = self._waiting[lane]
            waiting.append(Waiting(observations[lane], int(actions[lane]), float(rewards[lane])))
            ended = taken.terminated[lane] or taken.truncated[lane]
            while waiting and (ended or len(waiting) == self._n_step):
                discount = 0.0 if taken.terminated[lane] else self._discount ** len(waiting)
                total = self._discounted_sum(waiting)
                first = waiting.popleft()
                completed.append(
                    (first.observation, first.action, total, discount, taken.next_observations[lane])
                )
        return Columns(*(np.array(column) for column in zip(*completed, strict=True))) if completed else _NONE

    def _discounted_sum(self, waiting: deque[Waiting]) -> float:
        total = 0.0
        for step in reversed(waiting):
            total = step.reward + self._discount * total
        return total

    def state(self) -> dict[str, Array]:
        """Return what lies in wait, all lanes one after the other."""
        steps = [step for lane in self._waiting for step in lane]
        return {
            "lengths": np.array([len(lane) for lane in self._waiting], np.int64),
            "observations": np.array([step.observation for step in steps]),
            "actions": np.array([step.action for step in steps], np.int64),
            "rewards": np.array([step.reward for step in steps], np.float64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Become the accumulator that `state` was taken from."""
        columns = (state["observations"].copy(), state["actions"].tolist(), state["rewards"].tolist())
        steps = (Waiting(*step) for step in zip(*columns, strict=True))
        self._waiting = [deque(next(steps) for _ in range(length)) for length in state["lengths"].tolist()]


_NONE = Columns(*(np.empty(0) for _ in Columns._fields))
