"""Adam and RMSprop as PyTorch computes them, a step over a choice of tensors at a time.

PyTorch's optimiser classes spend more time around a small network's step than in it, and can't clip on
the way: here the gradients' norm is taken once, and the fused step divides by it as it reads them.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.rmsprop import rmsprop

from ebql.deep.config import AgentConfig


class Optimiser(Protocol):
    """Moves tensors along their gradients."""

    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's memory, without copying."""


def make_optimiser(config: AgentConfig, tensors: list[Tensor]) -> Optimiser:
    """Return the config's optimiser over these tensors."""
    if config.optimiser == "adam":
        return Adam(tensors, config.learning_rate, config.optimiser_eps)
    if config.optimiser == "centred-rmsprop":
        return CentredRMSprop(tensors, config.learning_rate, config.optimiser_eps, config.rmsprop_alpha)
    return RMSprop(tensors, config.learning_rate, config.optimiser_eps, config.rmsprop_alpha)


def norm_divisor(gradients: list[Tensor], max_norm: float) -> Tensor:
    """Return what to divide gradients by, at least 1, for their common norm to be `max_norm` at most."""
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    divisor: Tensor = (norm / max_norm).clamp_(min=1.0)
    return divisor


class _Memory:
    """Named tensors that an optimiser keeps for each tensor it moves."""

    def __init__(self, tensors: list[Tensor], *names: str) -> None:
        self.tensors = tensors
        self.kept = {name: [torch.zeros_like(tensor) for tensor in tensors] for name in names}
        self.kept["step"] = [torch.zeros((), device=tensor.device) for tensor in tensors]

    def of(self, name: str, chosen: Sequence[int]) -> list[Tensor]:
        kept = self.kept[name]
        return kept if len(chosen) == len(kept) else [kept[i] for i in chosen]

    def state(self) -> dict[str, Tensor]:
        return {f"{name}.{i}": x for name, kept in self.kept.items() for i, x in enumerate(kept)}


class Adam:
    """Kingma and Ba's Adam in one fused pass."""

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float) -> None:
        self._memory = _Memory(tensors, "mean", "square")
        self._tensors, self._learning_rate, self._eps = tensors, learning_rate, eps

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        adam(
            [self._tensors[i] for i in chosen],
            gradients,
            self._memory.of("mean", chosen),
            self._memory.of("square", chosen),
            [],
            self._memory.of("step", chosen),
            fused=True,
            grad_scale=divisor,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self._learning_rate,
            weight_decay=0.0,
            eps=self._eps,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's memory, without copying."""
        return self._memory.state()


class RMSprop:
    """Hinton's RMSprop, not centred."""

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float) -> None:
        self._memory = _Memory(tensors, "square")
        self._tensors, self._learning_rate, self._eps, self._alpha = tensors, learning_rate, eps, alpha

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        if divisor is not None:
            torch._foreach_div_(gradients, divisor)
        rmsprop(
            [self._tensors[i] for i in chosen],
            gradients,
            self._memory.of("square", chosen),
            [],
            [],
            self._memory.of("step", chosen),
            foreach=True,
            lr=self._learning_rate,
            alpha=self._alpha,
            eps=self._eps,
            weight_decay=0.0,
            momentum=0.0,
            centered=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's memory, without copying."""
        return self._memory.state()


class CentredRMSprop:
    """RMSprop by the gradient's variance, ε inside the root (Graves, 2013): DQN's and DQN Zoo's.

    m ← α m + (1 − α) g;  v ← α v + (1 − α) g²;  w ← w − lr · g / √(v − m² + ε).
    """

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float) -> None:
        self._memory = _Memory(tensors, "mean", "square")
        self._tensors, self._learning_rate, self._eps, self._alpha = tensors, learning_rate, eps, alpha

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        if divisor is not None:
            torch._foreach_div_(gradients, divisor)
        means, squares = self._memory.of("mean", chosen), self._memory.of("square", chosen)
        torch._foreach_lerp_(means, gradients, 1 - self._alpha)
        torch._foreach_mul_(squares, self._alpha)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - self._alpha)
        roots = torch._foreach_addcmul(squares, means, means, -1)
        torch._foreach_clamp_min_(roots, 0.0)  # a variance that rounding has made negative
        torch._foreach_add_(roots, self._eps)
        torch._foreach_sqrt_(roots)
        moved = [self._tensors[i] for i in chosen]
        torch._foreach_addcdiv_(moved, gradients, roots, -self._learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's memory, without copying."""
        return self._memory.state()
