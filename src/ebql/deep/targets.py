"""The bootstrap rules: who selects the next action, and who says what it is worth.

A rule is a pure function from the members' values of the NEXT observation to what each member should
have predicted for the current one. Values are `(batch, K, A)`: K members, A actions. `online` are the
parameters that learn, `target` their older copy. `discounts` (batch,) is γⁿ where the episode goes on
and 0 where it terminated, so no rule knows about episode ends.

A rule's target for member k reads no online values but member k's: where k alone learns, no others exist.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor


def q_learning(
    _q_next_online: Tensor | None, q_next_target: Tensor, rewards: Tensor, discounts: Tensor
) -> Tensor:
    """Return targets (batch, K): each member's own maximum. Who selects also evaluates."""
    values = q_next_target.amax(-1)
    return rewards[:, None] + discounts[:, None] * values


def double_q(q_next_online: Tensor, q_next_target: Tensor, rewards: Tensor, discounts: Tensor) -> Tensor:
    """Return targets (batch, K): online member k selects, its own target copy evaluates."""
    selected = q_next_online.argmax(-1, keepdim=True)
    values = q_next_target.gather(-1, selected).squeeze(-1)
    return rewards[:, None] + discounts[:, None] * values


def ensemble_bootstrap(
    q_next_online: Tensor, q_next_target: Tensor, rewards: Tensor, discounts: Tensor
) -> Tensor:
    """Return targets (batch, K): online member k selects, the other K − 1 target members evaluate.

    Q^{EN∖k} of the paper's section 5: the mean over j ≠ k, computed as (the sum over all − member k).
    """
    n_evaluators = q_next_target.shape[1] - 1
    selected = q_next_online.argmax(-1)
    by_all = q_next_target.sum(1).gather(-1, selected)
    by_selector = q_next_target.gather(-1, selected.unsqueeze(-1)).squeeze(-1)
    values = (by_all - by_selector) / n_evaluators
    return rewards[:, None] + discounts[:, None] * values


class Rule(NamedTuple):
    """A bootstrap rule and what it needs."""

    targets: Callable[[Any, Tensor, Tensor, Tensor], Tensor]
    selects_online: bool
    """Whether the rule reads `q_next_online`; if not, that forward pass is saved and None is given."""


RULES = {
    "q-learning": Rule(q_learning, selects_online=False),
    "double-q": Rule(double_q, selects_online=True),
    "ensemble-bootstrap": Rule(ensemble_bootstrap, selects_online=True),
}
