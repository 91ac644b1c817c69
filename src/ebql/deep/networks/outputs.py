"""What a network says about returns, and how far it is from what it should have said.

`Scalar` members say a number for each action, (rows, K, A); `Categorical` ones (C51, Bellemare et al.,
2017) how likely each of Z fixed returns is, (rows, K, A, Z). A head turns what they say into what is
compared (action values), what is bootstrapped from, and a loss.
"""

from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from ebql.deep.config.base import AgentConfig


class Head(Protocol):
    """A way to read a network's outputs."""

    def judgement(self, outputs: Tensor) -> Tensor:
        """Return what rules pick and average, of the outputs' shape (rows, K, A[, Z])."""

    def values(self, judged: Tensor) -> Tensor:
        """Return action values (rows, K, A) of a judgement (rows, K, A[, Z])."""

    def target(self, rewards: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
        """Return r + γ times what is bootstrapped from, both (rows, L[, Z])."""

    def loss(self, outputs: Tensor, target: Tensor) -> "Loss":
        """Return how far outputs for the actions taken are from the target, both (rows, L[, Z])."""


class Loss(NamedTuple):
    """How wrong the members were about each row."""

    losses: Tensor
    """(rows, L)."""
    slopes: Tensor
    """(rows, L[, Z]): the losses' derivatives by the outputs."""
    errors: Tensor
    """(rows, L): what the absolute value of sets priorities."""


def make_head(config: AgentConfig, device: torch.device) -> Head:
    """Return the config's head."""
    if config.atoms is None:
        return Scalar(config.loss)
    return Categorical(config.atoms, config.v_min, config.v_max, device)


class Scalar:
    """One number for each action, its value."""

    def __init__(self, loss: Literal["huber", "mse"]) -> None:
        self._loss = loss

    def judgement(self, outputs: Tensor) -> Tensor:
        """Return the outputs themselves."""
        return outputs

    def values(self, judged: Tensor) -> Tensor:
        """Return the outputs themselves."""
        return judged

    def target(self, rewards: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
        """Return r + γ v."""
        return rewards[:, None] + discounts[:, None] * bootstrap

    def loss(self, outputs: Tensor, target: Tensor) -> Loss:
        """Return Huber's loss, or the square, of the TD errors."""
        errors = outputs - target
        return Loss(*loss_and_slope(errors, self._loss), errors)


class Categorical:
    """A distribution over Z fixed returns ("atoms") for each action: outputs are its logits.

    The loss is the Kullback-Leibler divergence from the target, whose slopes are those of the cross entropy
    and whose size, as in Rainbow, sets priorities: it is 0 where there is nothing to learn.
    """

    def __init__(self, atoms: int, v_min: float, v_max: float, device: torch.device | None = None) -> None:
        self.support = torch.linspace(v_min, v_max, atoms, device=device)

    def judgement(self, outputs: Tensor) -> Tensor:
        """Return probabilities: the softmax over atoms, for each action by itself."""
        return outputs.softmax(-1)

    def values(self, judged: Tensor) -> Tensor:
        """Return the expected returns (rows, K, A)."""
        return judged @ self.support

    def target(self, rewards: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
        """Return the distribution of r + γ G for G distributed as `bootstrap`, on the atoms."""
        returns = rewards[:, None] + discounts[:, None] * self.support
        return projected(bootstrap, returns[:, None], self.support)

    def loss(self, outputs: Tensor, target: Tensor) -> Loss:
        """Return Σ m (log m − log p) and its derivative by the logits, p − m."""
        log_p = outputs.log_softmax(-1)
        divergence = (torch.xlogy(target, target) - target * log_p).sum(-1).clamp(min=0)
        return Loss(divergence, log_p.exp() - target, divergence)


def loss_and_slope(errors: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """Return the loss of each TD error (prediction − target) and its derivative, both of errors' shape."""
    if loss == "mse":
        return errors.square(), 2 * errors
    clipped = errors.clamp(-1, 1)  # Huber with δ = 1: Mnih et al.'s error clipping
    return clipped * (errors - 0.5 * clipped), clipped


def projected(probabilities: Tensor, returns: Tensor, support: Tensor) -> Tensor:
    """Return the distribution (…, Z) on the atoms `support` (Z,) of returns (…, Z) with these odds (…, Z).

    The mass of a return goes to the two atoms around it, the nearer one getting more, so that the mean
    stays (Bellemare et al., 2017, equation 7); returns beyond the ends count as the ends.
    """
    n_atoms = len(support)
    spacing = (support[-1] - support[0]) / (n_atoms - 1)
    places = ((returns.clamp(support[0], support[-1]) - support[0]) / spacing).clamp(0, n_atoms - 1)
    places = places.expand_as(probabilities)
    # A return that is not a number has no place, but must make the loss what it is.
    below = places.nan_to_num(nan=0.0).floor().clamp(max=n_atoms - 2)
    share_above = places - below
    below = below.long()
    onto = torch.zeros_like(probabilities)
    onto.scatter_add_(-1, below, probabilities * (1 - share_above))
    onto.scatter_add_(-1, below + 1, probabilities * share_above)
    return onto
