"""How members act together: one value for each action, the greedy action, and exploration."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebql.deep.config.base import Ensemble
from ebql.deep.replay.ring import Array

Actions = NDArray[np.int64]
Masks = NDArray[np.bool_]


def aggregate(values: Array, axis: int, *, pessimistic: bool) -> Array:
    """Return the members' mean over their axis, or their minimum if the ensemble is pessimistic."""
    aggregated: Array = values.min(axis) if pessimistic else values.mean(axis)
    return aggregated


def only_legal(values: Array, legal: Masks | None) -> Array:
    """Return values (…, A), with −∞ for actions that are not `legal` (…, A); None: all are."""
    return values if legal is None else np.where(legal, values, -np.inf)


def greedy_actions(q: Tensor, *, pessimistic: bool, legal: Masks | None = None) -> Tensor:
    """Return the legal actions (rows,) with the largest aggregate of members' values (rows, K, A)."""
    if q.shape[1] == 1:
        return _best(q[:, 0], legal)
    return _best(q.amin(1) if pessimistic else q.mean(1), legal)


def _best(values: Tensor, legal: Masks | None) -> Tensor:
    """Return the legal actions (rows,) with the largest values (rows, A)."""
    if legal is not None:
        values = values.masked_fill(torch.from_numpy(~legal).to(values.device), -torch.inf)
    return values.argmax(-1)


def random_actions(choice: NDArray[np.float64], n_actions: int, legal: Masks | None = None) -> Actions:
    """Return uniformly random legal actions (rows,), given uniform numbers `choice` (rows,) from [0, 1)."""
    if legal is None:
        return (choice * n_actions).astype(np.int64)
    place = (choice * legal.sum(1)).astype(np.int64)  # among the legal actions
    actions: Actions = (legal.cumsum(1) > place[:, None]).argmax(1)
    return actions


def epsilon_greedy(
    greedy: Actions | Callable[[], Actions],
    n_rows: int,
    n_actions: int,
    epsilon: float,
    rng: np.random.Generator,
    legal: Masks | None = None,
) -> Actions:
    """Return actions (n_rows,): random with probability ε, greedy otherwise.

    `greedy` are the greedy actions, or a function that computes them, which is called only if needed. Random
    actions are those that are `legal`, (n_rows, A); None: all are.
    """
    uniform, choice = rng.random((2, n_rows))
    explores = uniform < epsilon
    n_exploring = np.count_nonzero(explores)
    random = random_actions(choice, n_actions, legal)
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

    def preferred(self, q: Tensor, legal: Masks | None = None) -> Tensor:
        """Return the preferred legal actions (N,), given the members' values (N, K, A)."""
        if self._ensemble.exploration == "ucb":
            return _best(upper_bounds(q, self._ensemble.ucb_width), legal)
        if self._ensemble.exploration == "thompson":
            followed = torch.from_numpy(self.members).to(q.device)
            return _best(q[torch.arange(self._n_lanes, device=q.device), followed], legal)
        return greedy_actions(q, pessimistic=self._ensemble.pessimistic, legal=legal)

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
            members = state["members"].copy()
            if members.shape != (self._n_lanes,) or not np.isin(members, range(self._ensemble.size)).all():
                raise ValueError(f"lanes cannot follow the members {members}")
            self.members = members
