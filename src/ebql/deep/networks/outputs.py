"""What a network's outputs mean: action values, or distributions over returns, and their losses.

With `ValueOutput`, outputs are action values (rows, K, A). With `DistributionOutput` (C51, Bellemare et al.,
2017), they are logits over Z fixed returns, (rows, K, A, Z). With `QuantileOutput` (QR-DQN and IQN), they are
Z quantiles. Each turns outputs into predictions (what rules pick and average), predictions into action
values, and a target into a loss.
"""

from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from ebql.deep.config.base import AgentConfig
from ebql.deep.networks.heads import midpoints


class Output(Protocol):
    """How to read a network's outputs."""

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return what rules pick and average, of the same shape (rows, K, A[, Z]) as the outputs."""

    def values(self, predictions: Tensor) -> Tensor:
        """Return the action values (rows, K, A) of predictions (rows, K, A[, Z])."""

    def target(self, rewards: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
        """Return r + γ · bootstrap, both (rows, L[, Z])."""

    def loss(self, outputs: Tensor, target: Tensor) -> "Loss":
        """Return the loss of outputs for the actions taken against a target, both (rows, L[, Z])."""


class Loss(NamedTuple):
    """The loss of each row and member."""

    losses: Tensor
    """(rows, L)."""
    slopes: Tensor
    """(rows, L[, Z]): the derivatives of the losses with respect to the outputs."""
    errors: Tensor
    """(rows, L): their absolute values set priorities."""


def make_output(config: AgentConfig, device: torch.device) -> Output:
    """Return the output that the config asks for."""
    if config.quantiles is not None or config.implicit_quantiles is not None:
        return QuantileOutput(midpoints(config.quantiles or config.policy_fractions, device))
    if config.atoms is None:
        return ValueOutput(config.loss)
    return DistributionOutput(config.atoms, config.v_min, config.v_max, device)


class ValueOutput:
    """Outputs are action values."""

    def __init__(self, loss: Literal["huber", "mse"]) -> None:
        self._loss = loss

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return the outputs themselves."""
        return outputs

    def values(self, predictions: Tensor) -> Tensor:
        """Return the outputs themselves."""
        return predictions

    def target(self, rewards: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
        """Return r + γ v."""
        return rewards[:, None] + discounts[:, None] * bootstrap

    def loss(self, outputs: Tensor, target: Tensor) -> Loss:
        """Return the Huber or squared loss of the TD errors."""
        errors = outputs - target
        return Loss(*loss_and_slope(errors, self._loss), errors)


class DistributionOutput:
    """Outputs are logits of a distribution over Z fixed returns ("atoms") for each action.

    The loss is the Kullback-Leibler divergence from the target. Its gradient is that of the cross entropy.
    It also sets priorities, as in Rainbow, because it is 0 where there is nothing to learn.
    """

    def __init__(self, atoms: int, v_min: float, v_max: float, device: torch.device | None = None) -> None:
        self.support = torch.linspace(v_min, v_max, atoms, device=device)

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return probabilities: a softmax over atoms for each action."""
        return outputs.softmax(-1)

    def values(self, predictions: Tensor) -> Tensor:
        """Return the expected returns (rows, K, A)."""
        return predictions @ self.support

    def target(self, rewards: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
        """Return the distribution of r + γ G on the atoms, where G has the distribution `bootstrap`."""
        returns = rewards[:, None] + discounts[:, None] * self.support
        return projected(bootstrap, returns[:, None], self.support)

    def loss(self, outputs: Tensor, target: Tensor) -> Loss:
        """Return Σ m (log m − log p) and its derivative with respect to the logits, p − m."""
        log_p = outputs.log_softmax(-1)
        divergence = (torch.xlogy(target, target) - target * log_p).sum(-1).clamp(min=0)
        return Loss(divergence, log_p.exp() - target, divergence)


class QuantileOutput:
    """Outputs are Z quantiles of the return for each action, at `fractions` (Z,) or (rows, Z).

    QR-DQN (Dabney et al., 2018) has fixed fractions, IQN (Dabney et al., 2018b) draws them. Rules average
    quantiles of equal fractions, so the mean of members is that of their quantile functions, not a mixture.
    """

    def __init__(self, fractions: Tensor) -> None:
        self._fractions = fractions if fractions.ndim == 1 else fractions.unsqueeze(1)

    def predictions(self, outputs: Tensor) -> Tensor:
        """Return the outputs themselves."""
        return outputs

    def values(self, predictions: Tensor) -> Tensor:
        """Return the mean quantiles (rows, K, A), which estimate the expected returns."""
        return predictions.mean(-1)

    def target(self, rewards: Tensor, discounts: Tensor, bootstrap: Tensor) -> Tensor:
        """Return the quantiles of r + γ G, where G has the quantiles `bootstrap`."""
        return rewards[:, None, None] + discounts[:, None, None] * bootstrap

    def loss(self, outputs: Tensor, target: Tensor) -> Loss:
        """Return Σᵢ meanⱼ |τᵢ − 1{uᵢⱼ < 0}| Huber(uᵢⱼ), uᵢⱼ = targetⱼ − outputᵢ, with κ = 1.

        Outputs are (rows, L, Z) and targets (rows, L, Z′). Priorities are set by the error of the means: the
        loss is above 0 even where there is nothing to learn.
        """
        errors = target.unsqueeze(-2) - outputs.unsqueeze(-1)
        asymmetry = (self._fractions.unsqueeze(-1) - (errors < 0).to(errors)).abs()
        clipped = errors.clamp(-1, 1)
        losses = (asymmetry * clipped * (errors - 0.5 * clipped)).mean(-1).sum(-1)
        return Loss(losses, -(asymmetry * clipped).mean(-1), outputs.mean(-1) - target.mean(-1))


def loss_and_slope(errors: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """Return the loss of each TD error (prediction − target) and its derivative, both of errors' shape."""
    if loss == "mse":
        return errors.square(), 2 * errors
    clipped = errors.clamp(-1, 1)  # Huber with δ = 1: Mnih et al.'s error clipping
    return clipped * (errors - 0.5 * clipped), clipped


def projected(probabilities: Tensor, returns: Tensor, support: Tensor) -> Tensor:
    """Return the distribution (…, Z) on atoms `support` (Z,) of returns (…, Z) with `probabilities` (…, Z).

    The mass of a return is split between the two nearest atoms so that the mean is kept (Bellemare et al.,
    2017, equation 7). Returns beyond the support count as its ends.
    """
    n_atoms = len(support)
    spacing = (support[-1] - support[0]) / (n_atoms - 1)
    places = ((returns.clamp(support[0], support[-1]) - support[0]) / spacing).clamp(0, n_atoms - 1)
    places = places.expand_as(probabilities)
    # A NaN return has no place among the atoms, but must reach the loss.
    below = places.nan_to_num(nan=0.0).floor().clamp(max=n_atoms - 2)
    share_above = places - below
    below = below.long()
    onto = torch.zeros_like(probabilities)
    onto.scatter_add_(-1, below, probabilities * (1 - share_above))
    onto.scatter_add_(-1, below + 1, probabilities * share_above)
    return onto
