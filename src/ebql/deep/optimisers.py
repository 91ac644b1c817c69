"""Adam and RMSprop over a choice of tensors: in plain PyTorch here, in fused passes in `fast.optimisers`."""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from ebql.deep import fast
from ebql.deep.config.base import AgentConfig
from ebql.deep.fast import optimisers as fused

BETA_1, BETA_2 = 0.9, 0.999
"""Adam's decay rates."""


class Optimiser(Protocol):
    """Moves tensors along their gradients."""

    learning_rate: float

    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""


def make_optimiser(config: AgentConfig, tensors: list[Tensor]) -> Optimiser:
    """Return the config's optimiser over these tensors; both paths keep the same state."""
    rate, eps, alpha = config.learning_rate, config.optimiser_eps, config.rmsprop_alpha
    is_fast = fast.enabled()
    is_compiled = is_fast and all(tensor.device.type == "cpu" for tensor in tensors)
    if config.optimiser == "adam":
        return fused.Adam(tensors, rate, eps) if is_fast else Adam(tensors, rate, eps)
    if config.optimiser == "centred-rmsprop":
        return (fused.CentredRMSprop if is_compiled else CentredRMSprop)(tensors, rate, eps, alpha)
    if config.optimiser == "momentum-rmsprop":
        kind = fused.MomentumRMSprop if is_compiled else MomentumRMSprop
        return kind(tensors, rate, eps, alpha, config.rmsprop_momentum)
    return (fused.RMSprop if is_fast else RMSprop)(tensors, rate, eps, alpha)


def norm_divisor(gradients: list[Tensor], max_norm: float) -> Tensor:
    """Return what to divide gradients by, at least 1, so that their global norm is at most `max_norm`."""
    if fast.enabled():
        norm = fused.global_norm(gradients)
    else:
        norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    return (norm / max_norm).clamp_(min=1.0)


class _Plain:
    """Moves one tensor at a time, with ordinary operations."""

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, *names: str) -> None:
        self._tensors, self.learning_rate, self._eps = tensors, learning_rate, eps
        self._moments = {name: [torch.zeros_like(tensor) for tensor in tensors] for name in names}

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        for i, gradient in zip(chosen, gradients, strict=True):
            self._move(i, gradient if divisor is None else gradient / divisor)

    def _move(self, i: int, gradient: Tensor) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""
        return {f"{name}.{i}": x for name, own in self._moments.items() for i, x in enumerate(own)}


class Adam(_Plain):
    """Kingma and Ba's Adam."""

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float) -> None:
        super().__init__(tensors, learning_rate, eps, "mean", "square")
        self._steps = [torch.zeros((), device=tensor.device) for tensor in tensors]

    def _move(self, i: int, gradient: Tensor) -> None:
        mean, square = self._moments["mean"][i], self._moments["square"][i]
        t = int(self._steps[i].add_(1))
        mean.lerp_(gradient, 1 - BETA_1)
        square.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
        scale = (square.sqrt() / math.sqrt(1 - BETA_2**t)).add_(self._eps)
        self._tensors[i].addcdiv_(mean, scale, value=-self.learning_rate / (1 - BETA_1**t))

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""
        return super().state() | {f"step.{i}": step for i, step in enumerate(self._steps)}


class RMSprop(_Plain):
    """Hinton's RMSprop, not centred: v ← α v + (1 − α) g²;  w ← w − lr · g / (√v + ε)."""

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float) -> None:
        super().__init__(tensors, learning_rate, eps, "square")
        self._alpha = alpha

    def _move(self, i: int, gradient: Tensor) -> None:
        square = self._moments["square"][i]
        square.mul_(self._alpha).addcmul_(gradient, gradient, value=1 - self._alpha)
        self._tensors[i].addcdiv_(gradient, square.sqrt().add_(self._eps), value=-self.learning_rate)


class CentredRMSprop(_Plain):
    """RMSprop by the gradient's variance, ε inside the root (Graves, 2013): DQN's and DQN Zoo's.

    m ← α m + (1 − α) g;  v ← α v + (1 − α) g²;  w ← w − lr · g / √(v − m² + ε).
    """

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float) -> None:
        super().__init__(tensors, learning_rate, eps, "mean", "square")
        self._alpha = alpha

    def _move(self, i: int, gradient: Tensor) -> None:
        mean, square = self._moments["mean"][i], self._moments["square"][i]
        mean.lerp_(gradient, 1 - self._alpha)
        square.mul_(self._alpha).addcmul_(gradient, gradient, value=1 - self._alpha)
        variance = (square - mean.square()).clamp_(min=0.0)  # rounding can make it negative
        self._tensors[i].addcdiv_(gradient, variance.add_(self._eps).sqrt_(), value=-self.learning_rate)


class MomentumRMSprop(_Plain):
    """RMSprop by the gradient's variance with momentum, ε outside the root: PyTorch's, and MinAtar's.

    m ← α m + (1 − α) g;  v ← α v + (1 − α) g²;  u ← β u + g / (√(v − m²) + ε);  w ← w − lr · u.
    """

    def __init__(
        self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float, momentum: float
    ) -> None:
        super().__init__(tensors, learning_rate, eps, "mean", "square", "velocity")
        self._alpha, self._momentum = alpha, momentum

    def _move(self, i: int, gradient: Tensor) -> None:
        mean, square, velocity = (self._moments[name][i] for name in ("mean", "square", "velocity"))
        mean.lerp_(gradient, 1 - self._alpha)
        square.mul_(self._alpha).addcmul_(gradient, gradient, value=1 - self._alpha)
        root = square.addcmul(mean, mean, value=-1).clamp_(min=0.0).sqrt_()  # rounding can go below 0
        velocity.mul_(self._momentum).addcdiv_(gradient, root.add_(self._eps))
        self._tensors[i].add_(velocity, alpha=-self.learning_rate)
