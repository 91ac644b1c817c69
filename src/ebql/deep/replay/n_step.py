"""n-step returns: from the steps of lanes to transitions."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ebql.deep.replay.ring import ALL_ALIKE, EVERY_ACTION, Array, Transitions
from ebql.environments import LaneStep


def learnt_rewards(rewards: Array, scale: float, clip: float | None) -> Array:
    """Return rewards as agents learn from them: multiplied by `scale`, then clipped to ± `clip`."""
    if scale != 1:
        rewards = rewards * scale
    return rewards if clip is None else rewards.clip(-clip, clip)


class Waiting(NamedTuple):
    """A step whose n-th successor has not happened yet."""

    observation: Array
    action: int
    reward: float


class NStep:
    """Sums each lane's next n rewards. Sums end with the episode and never cross into the next one.

    The discount of a transition over m steps is γᵐ, or 0 if the episode terminated within them. After a
    truncation, the last observation is bootstrapped from. At most n − 1 steps of each lane wait.
    """

    def __init__(self, n_step: int, discount: float, n_lanes: int) -> None:
        self._n_step, self._discount = n_step, discount
        self._waiting: list[deque[Waiting]] = [deque() for _ in range(n_lanes)]

    def __len__(self) -> int:
        """The number of waiting steps, over all lanes."""
        return sum(len(lane) for lane in self._waiting)

    def push(
        self, observations: Array, actions: Array, rewards: Array, taken: LaneStep
    ) -> Transitions[Array] | None:
        """Take the step that followed `actions` (N,) on `observations` (N, …); return what it completes.

        `rewards` (N,) are those to learn from. Lanes that were only reset give nothing. The transitions have
        no masks yet.
        """
        if self._n_step == 1:
            discounts = np.where(taken.terminated, 0.0, self._discount)
            columns = observations, actions, rewards, discounts, taken.next_observations
            n_valid = np.count_nonzero(taken.valid)
            if n_valid == len(actions):
                return _transitions(columns, taken.next_masks)
            return _kept(columns, taken) if n_valid else None
        completed: list[tuple[Array, int, float, float, Array]] = []
        lanes: list[int] = []
        for lane in np.flatnonzero(taken.valid).tolist():
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
                lanes.append(lane)
        if not completed:
            return None
        legal = None if taken.next_masks is None else taken.next_masks[lanes]
        return _transitions([np.array(column) for column in zip(*completed, strict=True)], legal)

    def _discounted_sum(self, waiting: deque[Waiting]) -> float:
        total = 0.0
        for step in reversed(waiting):
            total = step.reward + self._discount * total
        return total

    def state(self) -> dict[str, Array]:
        """Return the waiting steps, all lanes one after the other."""
        steps = [step for lane in self._waiting for step in lane]
        return {
            "lengths": np.array([len(lane) for lane in self._waiting], np.int64),
            "observations": np.array([step.observation for step in steps]),
            "actions": np.array([step.action for step in steps], np.int64),
            "rewards": np.array([step.reward for step in steps], np.float64),
        }

    def restore(self, state: dict[str, Array]) -> None:
        """Restore a saved `state`."""
        lengths = state["lengths"].tolist()
        if len(lengths) != len(self._waiting) or sum(lengths) != len(state["actions"]) or min(lengths) < 0:
            raise ValueError(f"{len(state['actions'])} waiting steps are not {lengths} for each lane")
        columns = (state["observations"].copy(), state["actions"].tolist(), state["rewards"].tolist())
        steps = (Waiting(*step) for step in zip(*columns, strict=True))
        self._waiting = [deque(next(steps) for _ in range(length)) for length in lengths]


def _kept(columns: Sequence[Array], taken: LaneStep) -> Transitions[Array]:
    """Return the transitions of the lanes that were not only reset."""
    legal = None if taken.next_masks is None else taken.next_masks[taken.valid]
    return _transitions([column[taken.valid] for column in columns], legal)


def _transitions(columns: Sequence[Array], legal: Array | None) -> Transitions[Array]:
    no_masks = np.empty((len(columns[0]), 0), bool)
    return Transitions._make((*columns, no_masks, ALL_ALIKE, EVERY_ACTION if legal is None else legal))
