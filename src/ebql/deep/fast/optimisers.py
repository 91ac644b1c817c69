"""Adam and RMSprop in fused passes, as `ebql.deep.optimisers` computes them plainly.

PyTorch's optimiser classes spend more time around a small network's step than in it, and they cannot clip on
the way. Here the norm of the gradients is taken once, and the fused step divides by it as it reads them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def global_norm(gradients: list[Tensor]) -> Tensor:
    """Return the norm of all gradients together."""
    # Twice as fast as PyTorch's norms, whose pass over large tensors does not keep up with memory.
    squares = [torch.dot(numbers, numbers) for numbers in map(_in_any_order, gradients)]
    return torch.stack(squares).sum().sqrt()


def _in_any_order(gradient: Tensor) -> Tensor:
    """Return the numbers of a gradient, (n,), in the order of memory if it is dense."""
    fills_its_memory = gradient.untyped_storage().nbytes() == gradient.nbytes
    return (_in_memory_order(gradient) if fills_its_memory else gradient).reshape(-1)


def _in_memory_order(tensor: Tensor) -> Tensor:
    """Return a dense tensor in the order of its memory, where a fused step is fastest."""
    return tensor if tensor.is_contiguous() else tensor.as_strided((tensor.numel(),), (1,))


class _Moments:
    """The tensors that an optimiser moves, and its named state for each of them."""

    def __init__(self, tensors: list[Tensor], *names: str) -> None:
        self._tensors = tensors
        self.kept = {name: [torch.zeros_like(tensor) for tensor in tensors] for name in names}
        self._stored = {
            name: [_in_memory_order(tensor) for tensor in kept]
            for name, kept in {"": tensors, **self.kept}.items()
        }

    def moved(self, chosen: Sequence[int]) -> list[Tensor]:
        """Return the chosen tensors in the order of memory."""
        return self.of("", chosen)

    def of(self, name: str, chosen: Sequence[int]) -> list[Tensor]:
        """Return the state of this name for the chosen tensors, in the order of memory."""
        stored = self._stored[name]
        return stored if len(chosen) == len(stored) else [stored[i] for i in chosen]

    def ordered(self, chosen: Sequence[int], gradients: list[Tensor]) -> list[Tensor]:
        """Return gradients stored as their tensors are: fused steps pair numbers by address, not by index."""
        ordered = []
        for i, gradient in zip(chosen, gradients, strict=True):
            tensor = self._tensors[i]
            if gradient.stride() != tensor.stride():
                gradient = torch.empty_like(tensor).copy_(gradient)
            ordered.append(_in_memory_order(gradient))
        return ordered

    def state(self) -> dict[str, Tensor]:
        return {f"{name}.{i}": x for name, kept in self.kept.items() for i, x in enumerate(kept)}


class Adam:
    """Kingma and Ba's Adam in one fused pass."""

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float) -> None:
        self._moments = _Moments(tensors, "mean", "square")
        self._steps = [torch.zeros((), device=tensor.device) for tensor in tensors]
        self.learning_rate, self._eps = learning_rate, eps

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        steps = [self._steps[i] for i in chosen]
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            self._moments.moved(chosen),
            self._moments.ordered(chosen, gradients),
            self._moments.of("mean", chosen),
            self._moments.of("square", chosen),
            [],
            steps,
            grad_scale=divisor,
            lr=self.learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=self._eps,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""
        return self._moments.state() | {f"step.{i}": step for i, step in enumerate(self._steps)}


class RMSprop:
    """Hinton's RMSprop, not centred, in one fused pass.

    PyTorch has no such pass for RMSprop. But RMSprop is Adam without a running mean (β₁ = 0) after so many
    steps that Adam's bias correction is 1.
    """

    _LONG_AFTER_THE_START = 1e9

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float) -> None:
        self._moments = _Moments(tensors, "square")
        self._steps = [torch.tensor(self._LONG_AFTER_THE_START, device=tensor.device) for tensor in tensors]
        self.learning_rate, self._eps, self._alpha = learning_rate, eps, alpha

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        gradients = self._moments.ordered(chosen, gradients)
        torch._fused_adam_(
            self._moments.moved(chosen),
            gradients,
            gradients,  # the mean of one gradient is itself, and overwrites it
            self._moments.of("square", chosen),
            [],
            self._steps[: len(chosen)],
            grad_scale=divisor,
            lr=self.learning_rate,
            beta1=0.0,
            beta2=self._alpha,
            eps=self._eps,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""
        return self._moments.state()


class CentredRMSprop:
    """RMSprop by the gradient's variance, ε inside the root (Graves, 2013): DQN's and DQN Zoo's.

    m ← α m + (1 − α) g;  v ← α v + (1 − α) g²;  w ← w − lr · g / √(v − m² + ε).
    """

    def __init__(self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float) -> None:
        self._moments = _Moments(tensors, "mean", "square")
        self.learning_rate, self._eps, self._alpha = learning_rate, eps, alpha

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        roots, gradients = _variances(self._moments, chosen, gradients, divisor, self._alpha)
        torch._foreach_add_(roots, self._eps)
        torch._foreach_sqrt_(roots)
        torch._foreach_addcdiv_(self._moments.moved(chosen), gradients, roots, -self.learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""
        return self._moments.state()


class MomentumRMSprop:
    """RMSprop by the gradient's variance with momentum, ε outside the root: PyTorch's, and MinAtar's.

    m ← α m + (1 − α) g;  v ← α v + (1 − α) g²;  u ← β u + g / (√(v − m²) + ε);  w ← w − lr · u.
    """

    def __init__(
        self, tensors: list[Tensor], learning_rate: float, eps: float, alpha: float, momentum: float
    ) -> None:
        self._moments = _Moments(tensors, "mean", "square", "velocity")
        self.learning_rate, self._eps, self._alpha, self._momentum = learning_rate, eps, alpha, momentum

    @torch.no_grad()
    def step(self, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None) -> None:
        """Move the `chosen` tensors along these gradients, each divided by `divisor` first."""
        roots, gradients = _variances(self._moments, chosen, gradients, divisor, self._alpha)
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, self._eps)
        velocities = self._moments.of("velocity", chosen)
        torch._foreach_mul_(velocities, self._momentum)
        torch._foreach_addcdiv_(velocities, gradients, roots)
        torch._foreach_add_(self._moments.moved(chosen), velocities, alpha=-self.learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""
        return self._moments.state()


def _variances(
    moments: _Moments, chosen: Sequence[int], gradients: list[Tensor], divisor: Tensor | None, alpha: float
) -> tuple[list[Tensor], list[Tensor]]:
    """Renew the moments; return the variances v − m² as new tensors, and the gradients as they were used."""
    gradients = moments.ordered(chosen, gradients)
    if divisor is not None:
        torch._foreach_div_(gradients, divisor)
    means, squares = moments.of("mean", chosen), moments.of("square", chosen)
    torch._foreach_lerp_(means, gradients, 1 - alpha)
    torch._foreach_mul_(squares, alpha)
    torch._foreach_addcmul_(squares, gradients, gradients, 1 - alpha)
    variances = torch._foreach_addcmul(squares, means, means, -1)
    torch._foreach_clamp_min_(variances, 0.0)  # rounding can make a variance negative
    return list(variances), gradients
