"""How members act together: one value for each action, the greedy action, and exploration."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebql.deep.config.base import Ensemble
from ebql.deep.replay.ring import Array

Actions = NDArray[np.int64]


def aggregate(values: Array, axis: int, *, pessimistic: bool) -> Array:
    """Return the members' mean over their axis, or their minimum if the ensemble is pessimistic."""
    aggregated: Array = values.min(axis) if pessimistic else values.mean(axis)
    return aggregated


def greedy_actions(q: Tensor, *, pessimistic: bool) -> Tensor:
    """Return the greedy actions (rows,) of the aggregate of members' values (rows, K, A)."""
    if q.shape[1] == 1:
        return q[:, 0].argmax(-1)
    return (q.amin(1) if pessimistic else q.mean(1)).argmax(-1)


def epsilon_greedy(
    greedy: Actions | Callable[[], Actions],
    n_rows: int,
    n_actions: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Actions:
    """Return actions (n_rows,): random with probability ε, greedy otherwise.

    `greedy` are the greedy actions, or a function that computes them, which is called only if needed.
    """
    uniform, choice = rng.random((2, n_rows))
    explores = uniform < epsilon
    n_exploring = np.count_nonzero(explores)
    random: Actions = (choice * n_actions).astype(np.int64)
    if n_exploring == n_rows:
        return random
    best = greedy() if callable(greedy) else greedy
    return np.where(explores, random, best) if n_exploring else best


def upper_bounds(q: Tensor, width: float) -> Tensor:
    """Return mean + `width` standard deviations (divisor K), (rows, A), of members' values (rows, K, A)."""
    return q.mean(1) + width * q.std(1, correction=0)


class Explorer:
    """The ensemble's preferred actions in training; with `thompson`, a lane follows one member an episode."""

    def __init__(self, ensemble: Ensemble, n_lanes: int, rng: np.random.Generator) -> None:
        self._ensemble, self._n_lanes, self._rng = ensemble, n_lanes, rng
        self.members = np.zeros(n_lanes, np.int64)
        """(N,) the member that each lane follows."""
        if ensemble.exploration == "thompson":
            self.members = rng.integers(0, ensemble.size, n_lanes)

    @property
    def uses_aggregate(self) -> bool:
        """Whether actions are greedy on the members' aggregate."""
        return self._ensemble.exploration == "epsilon"

    def preferred(self, q: Tensor) -> Tensor:
        """Return the preferred actions (N,), given the members' values (N, K, A)."""
        if self._ensemble.exploration == "ucb":
            return upper_bounds(q, self._ensemble.ucb_width).argmax(-1)
        if self._ensemble.exploration == "thompson":
            followed = torch.from_numpy(self.members).to(q.device)
            return q[torch.arange(self._n_lanes, device=q.device), followed].argmax(-1)
        return greedy_actions(q, pessimistic=self._ensemble.pessimistic)

    def begin_episode(self, lane: int) -> None:
        """Choose the member that this lane follows in its next episode."""
        if self._ensemble.exploration == "thompson":
            self.members[lane] = self._rng.integers(0, self._ensemble.size)

    def state(self) -> dict[str, NDArray[np.int64]]:
        """Return the members that lanes follow, with `thompson`."""
        return {"members": self.members} if self._ensemble.exploration == "thompson" else {}

    def restore(self, state: dict[str, NDArray[np.int64]]) -> None:
        """Restore a saved `state`."""
        if state:
            self.members = state["members"].copy()
