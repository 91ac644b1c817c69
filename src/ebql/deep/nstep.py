"""From steps to n-step transitions, lane by lane."""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Pending = tuple[Array, int, float]


class NStep:
    """Sums each lane's next n rewards; an episode's end gives shorter sums, never ones across it.

    What lies in wait is at most n − 1 steps a lane: (observation, action, reward) of steps whose n-th
    successor hasn't come yet.
    """

    def __init__(self, n_step: int, discount: float, n_lanes: int) -> None:
        self._n_step, self._discount = n_step, discount
        self._pending: list[deque[Pending]] = [deque() for _ in range(n_lanes)]

    def push(
        self,
        lane: int,
        observation: Array,
        action: int,
        reward: float,
        next_observation: Array,
        *,
        terminated: bool,
        ended: bool,
    ) -> list[tuple[Array, int, float, float, Array]]:
        """Take one step of a lane; return the transitions (s, a, Σγⁱr, discount, s′) it completes."""
        pending = self._pending[lane]
        pending.append((observation, action, reward))
        completed = []
        while pending and (ended or len(pending) == self._n_step):
            total = 0.0
            for _, _, later_reward in reversed(pending):
                total = later_reward + self._discount * total
            bootstrap = 0.0 if terminated else self._discount ** len(pending)
            first, first_action, _ = pending.popleft()
            completed.append((first, first_action, total, bootstrap, next_observation))
        return completed

    def state(self) -> dict[str, Array]:
        """Return what lies in wait, all lanes one after the other."""
        waiting = [step for lane in self._pending for step in lane]
        return {
            "lengths": np.array([len(lane) for lane in self._pending], np.int64),
            "observations": np.array([step[0] for step in waiting]),
            "actions": np.array([step[1] for step in waiting], np.int64),
            "rewards": np.array([step[2] for step in waiting], np.float64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Become the accumulator that `state` was taken from."""
        steps = iter(
            zip(state["observations"], state["actions"].tolist(), state["rewards"].tolist(), strict=True)
        )
        self._pending = [deque(next(steps) for _ in range(length)) for length in state["lengths"].tolist()]
