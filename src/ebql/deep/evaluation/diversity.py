"""The cost of diversity: what members learn from their own and from the others' data.

Members of an ensemble share their data, and most of a member's transitions come from actions that it would
not have taken itself. Lin et al. (ICLR 2024) call the loss that this can cause the curse of diversity. Here a
transition is a member's own if its action is greedy for that member now, and the others' otherwise. If the TD
errors of a member are larger on the others' transitions, it learns worse from them.

The replay keeps the legal actions of the next state only. With action masks it is therefore unknown which
legal action is greedy in the state itself, so trainings with both are refused.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Diversity(NamedTuple):
    """Sums of |TD error| and numbers of (row, member) pairs, of own and of the others' transitions."""

    own_sum: float = 0.0
    own_count: float = 0.0
    others_sum: float = 0.0
    others_count: float = 0.0

    def plus(self, other: "Diversity") -> "Diversity":
        """Return the sums over both."""
        return Diversity(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def own(self) -> float | None:
        """The mean |TD error| on own transitions; None without any."""
        return self.own_sum / self.own_count if self.own_count else None

    @property
    def others(self) -> float | None:
        """The mean |TD error| on the others' transitions; None without any."""
        return self.others_sum / self.others_count if self.others_count else None


def diversity(values: Tensor, actions: Tensor, errors: Tensor) -> Diversity:
    """Return the sums of an update.

    `values` (rows, L, A) are those of the members that learn, `actions` (rows,) the ones taken, and `errors`
    (rows, L) the TD errors.
    """
    own = (values.argmax(-1) == actions.unsqueeze(1)).double()
    sizes = errors.abs().double()
    sums = torch.stack([(own * sizes).sum(), own.sum(), ((1 - own) * sizes).sum(), (1 - own).sum()])
    return Diversity(*sums.tolist())
