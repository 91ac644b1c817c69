"""What members say together, and which action they are greedy in: by that, an upper bound, or one of them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebql.deep.config.base import Ensemble
from ebql.deep.replay.ring import Array


def said_together(values: Array, axis: int, *, pessimistic: bool) -> Array:
    """Return the mean of members' values over their axis, or what the least of them says."""
    together: Array = values.min(axis) if pessimistic else values.mean(axis)
    return together


def greedy_actions(q: Tensor, *, pessimistic: bool) -> Tensor:
    """Return the actions (rows,) that members of values (rows, K, A) prefer together."""
    if q.shape[1] == 1:
        return q[:, 0].argmax(-1)
    return (q.amin(1) if pessimistic else q.mean(1)).argmax(-1)


def upper_bounds(q: Tensor, width: float) -> Tensor:
    """Return mean + `width` standard deviations (divisor K), (rows, A), of members' values (rows, K, A)."""
    return q.mean(1) + width * q.std(1, correction=0)


class Explorer:
    """What an ensemble prefers while it learns; with `thompson`, each lane follows a member an episode."""

    def __init__(self, ensemble: Ensemble, n_lanes: int, rng: np.random.Generator) -> None:
        self._ensemble, self._n_lanes, self._rng = ensemble, n_lanes, rng
        self.members = np.zeros(n_lanes, np.int64)
        """(N,) the member that each lane follows."""
        if ensemble.exploration == "thompson":
            self.members = rng.integers(0, ensemble.size, n_lanes)

    @property
    def follows_all(self) -> bool:
        """Whether what the members say together is all that is looked at."""
        return self._ensemble.exploration == "epsilon"

    def preferred(self, q: Tensor) -> Tensor:
        """Return the actions (N,) preferred of the members' values (N, K, A)."""
        if self._ensemble.exploration == "ucb":
            return upper_bounds(q, self._ensemble.ucb_width).argmax(-1)
        if self._ensemble.exploration == "thompson":
            followed = torch.from_numpy(self.members).to(q.device)
            return q[torch.arange(self._n_lanes, device=q.device), followed].argmax(-1)
        return greedy_actions(q, pessimistic=self._ensemble.pessimistic)

    def begin_episode(self, lane: int) -> None:
        """Draw the member that this lane follows from now on."""
        if self._ensemble.exploration == "thompson":
            self.members[lane] = self._rng.integers(0, self._ensemble.size)

    def state(self) -> dict[str, NDArray[np.int64]]:
        """Return the members that are followed, if any are."""
        return {"members": self.members} if self._ensemble.exploration == "thompson" else {}

    def restore(self, state: dict[str, NDArray[np.int64]]) -> None:
        """Become the explorer that `state` was taken from."""
        if state:
            self.members = state["members"].copy()
