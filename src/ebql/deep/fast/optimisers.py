"""Adam and RMSprop as PyTorch computes them, a step over a choice of tensors at a time.

PyTorch's optimiser classes spend more time around a small network's step than in it, and can't clip on
the way: here the gradients' norm is taken once, and the fused step divides by it as it reads them.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from ebql.deep.config.base import AgentConfig


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
    # Twice as fast as PyTorch's norms, whose pass over large tensors does not keep up with memory.
    squares = [torch.dot(numbers, numbers) for numbers in map(_in_any_order, gradients)]
    return (torch.stack(squares).sum().sqrt() / max_norm).clamp_(min=1.0)


def _in_any_order(gradient: Tensor) -> Tensor:
    """Return the numbers of a gradient, (n,), as they lie in memory if it is dense."""
    fills_its_memory = gradient.untyped_storage().nbytes() == gradient.nbytes
    return (_as_it_lies(gradient) if fills_its_memory else gradient).reshape(-1)


def _as_it_lies(tensor: Tensor) -> Tensor:
    """Return a dense tensor in the order of its memory, where a fused step is fastest."""
    return tensor if tensor.is_contiguous() else tensor.as_strided((tensor.numel(),), (1,))


class _Memory:
    """The tensors that an optimiser moves, and the named ones that it keeps for each of them."""

    def __init__(self, tensors: list[Tensor], *names: str) -> None:
        self._tensors = tensors
        self.kept = {name: [torch.zeros_like(tensor) for tensor in tensors] for name in names}
        self._lying = {
            name: [_as_it_lies(tensor) for tensor in kept]
            for name, kept in {"": tensors, **self.kept}.items()
        }

    def moved(self, chosen: Sequence[int]) -> list[Tensor]:
        """Return the chosen tensors as they lie in memory."""
        return self.of("", chosen)

    def of(self, name: str, chosen: Sequence[int]) -> list[Tensor]:
        """Return what is kept under this name for the chosen tensors, as it lies in memory."""
        lying = self._lying[name]
        return lying if len(chosen) == len(lying) else [lying[i] for i in chosen]

    def ordered(self, chosen: Sequence[int], gradients: list[Tensor]) -> list[Tensor]:
        """Return gradients as their tensors lie: a fused step pairs numbers by address, not by index."""
        ordered = []
        for i, gradient in zip(chosen, gradients, strict=True):
            tensor = self._tensors[i]
            if gradient.stride() != tensor.stride():
                gradient = torch.empty_like(tensor).copy_(gradient)
            ordered.append(_as_it_lies(gradient))
        return ordered

    def state(self) -> dict[str, Tensor]:
        return {f"{name}.{i}": x for name, kept in self.kept.items() for i, x in enumerate(kept)}


class Adam:
    """Kingma and Ba's Adam in one fused pass."""

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float) -> None:
        self._memory = _Memory(tensors, "mean", "square")
        self._steps = [torch.zeros((), device=tensor.device) for tensor in tensors]
        self._learning_rate, self._eps = learning_rate, eps

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        steps = [self._steps[i] for i in chosen]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            self._memory.moved(chosen),
            self._memory.ordered(chosen, gradients),
            self._memory.of("mean", chosen),
            self._memory.of("square", chosen),
            [],
            steps,
            grad_scale=divisor,
            lr=self._learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=self._eps,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's memory, without copying."""
        return self._memory.state() | {f"step.{i}": step for i, step in enumerate(self._steps)}


class RMSprop:
    """Hinton's RMSprop, not centred, in one fused pass.

    PyTorch has no such pass for RMSprop, but RMSprop is Adam without a memory of the mean (β₁ = 0) that has
    gone on for so long that its correction for the start is 1.
    """

    _LONG_AFTER_THE_START = 1e9

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float) -> None:
        self._memory = _Memory(tensors, "square")
        self._steps = [torch.tensor(self._LONG_AFTER_THE_START, device=tensor.device) for tensor in tensors]
        self._learning_rate, self._eps, self._alpha = learning_rate, eps, alpha

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        gradients = self._memory.ordered(chosen, gradients)
        torch._fused_adam_(
            self._memory.moved(chosen),
            gradients,
            gradients,  # the mean of one gradient: written over it, it costs no memory
            self._memory.of("square", chosen),
            [],
            self._steps[: len(chosen)],
            grad_scale=divisor,
            lr=self._learning_rate,
            beta1=0.0,
            beta2=self._alpha,
            eps=self._eps,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
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
        self._learning_rate, self._eps, self._alpha = learning_rate, eps, alpha

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        gradients = self._memory.ordered(chosen, gradients)
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
        torch._foreach_addcdiv_(self._memory.moved(chosen), gradients, roots, -self._learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's memory, without copying."""
        return self._memory.state()
