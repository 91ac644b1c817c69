"""Adam and RMSprop in fused passes, as `ebql.deep.optimisers` computes them plainly.

PyTorch's optimiser classes spend more time around a small network's step than in it, and they cannot clip on
the way. Here the norm of the gradients is taken once, and the fused step divides by it as it reads them.
PyTorch has such a pass for Adam, which serves RMSprop, too. Those of the centred kinds are compiled here.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebql.compiled import compiled, inlined

Floats = NDArray[np.float32]


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

    def arrays(self, chosen: Sequence[int], gradients: list[Tensor], *names: str) -> Iterator[list[Floats]]:
        """Yield each chosen tensor, its gradient and its state of these names as arrays (n,), on a CPU."""
        columns = (
            self.moved(chosen),
            self.ordered(chosen, gradients),
            *(self.of(name, chosen) for name in names),
        )
        for tensors in zip(*columns, strict=True):
            yield [tensor.view(-1).numpy() for tensor in tensors]

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
        options = self.learning_rate, self._eps, self._alpha, 1 - self._alpha
        constants = [np.float32(number) for number in (_number(divisor), *options)]
        for weights, own, means, squares in self._moments.arrays(chosen, gradients, "mean", "square"):
            _centred_step(weights, own, means, squares, *constants)

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
        options = self.learning_rate, self._eps, self._alpha, 1 - self._alpha, self._momentum
        constants = [np.float32(number) for number in (_number(divisor), *options)]
        names = "mean", "square", "velocity"
        for weights, own, means, squares, velocities in self._moments.arrays(chosen, gradients, *names):
            _momentum_step(weights, own, means, squares, velocities, *constants)

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without copying."""
        return self._moments.state()


def _number(divisor: Tensor | None) -> float:
    return 1.0 if divisor is None else divisor.item()


@compiled
def _centred_step(
    weights: Floats,
    gradients: Floats,
    means: Floats,
    squares: Floats,
    divisor: np.float32,
    rate: np.float32,
    eps: np.float32,
    alpha: np.float32,
    rest: np.float32,
) -> None:
    """Take a step of `CentredRMSprop`; `rest` is 1 − α, rounded once."""
    for i in range(len(weights)):
        gradient = np.divide(gradients[i], divisor)  # unlike `/`, without a check for 0 in compiled code
        variance = _variance(gradient, i, means, squares, alpha, rest)
        weights[i] -= rate * np.divide(gradient, np.sqrt(variance + eps))


@compiled
def _momentum_step(
    weights: Floats,
    gradients: Floats,
    means: Floats,
    squares: Floats,
    velocities: Floats,
    divisor: np.float32,
    rate: np.float32,
    eps: np.float32,
    alpha: np.float32,
    rest: np.float32,
    momentum: np.float32,
) -> None:
    """Take a step of `MomentumRMSprop`; `rest` is 1 − α, rounded once."""
    for i in range(len(weights)):
        gradient = np.divide(gradients[i], divisor)
        variance = _variance(gradient, i, means, squares, alpha, rest)
        velocity = momentum * velocities[i] + np.divide(gradient, np.sqrt(variance) + eps)
        velocities[i] = velocity
        weights[i] -= rate * velocity


@inlined
def _variance(
    gradient: np.float32, i: int, means: Floats, squares: Floats, alpha: np.float32, rest: np.float32
) -> np.float32:
    """Renew the moments of weight `i`, and return the variance v − m² of its gradient."""
    mean = means[i] + rest * (gradient - means[i])
    square = alpha * squares[i] + rest * gradient * gradient
    means[i], squares[i] = mean, square
    variance: np.float32 = square - mean * mean
    return np.float32(0) if variance < 0 else variance  # rounding can make it negative
