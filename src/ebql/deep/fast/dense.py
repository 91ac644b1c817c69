"""Dense layers of M members: one batched product, or for large layers one wide one."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

_HAS_ONEDNN: bool = torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")

Pair = tuple[Tensor, Tensor]


class Room:
    """Memory for a layer's gradient, in which each one takes the place of the one before.

    The pages of a fresh array would take as long to get as the gradient to compute. So a gradient is good
    until the next pass back, and in one graph a layer may be passed with gradients only once.
    """

    def __init__(self) -> None:
        self._tensor: Tensor | None = None

    def like(self, tensor: Tensor) -> Tensor:
        """Return the room for a gradient of this tensor."""
        if self._tensor is None or _kind(self._tensor) != _kind(tensor):
            self._tensor = torch.empty_like(tensor)
        return self._tensor


def _kind(tensor: Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return tensor.shape, tensor.dtype, tensor.device


def _wide_product(rows: Tensor, by_output: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return rows (n, in) times weights (out, in), as they are or packed, plus a bias (out,): (n, out).

    By oneDNN, as convolutions are: for the few rows of a batch it reaches three quarters of the machine's
    peak, and nine tenths with packed weights, where the library behind `@` reaches two thirds.
    """
    product: Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, by_output, bias, "none", [], "")
    return product


class _LargeProduct(torch.autograd.Function):
    """Rows (rows, in) that all members share, times weights (M, in, out) that lie in memory as (M, out, in).

    All members are then one matrix of M · out rows, and nothing is summed over members on the way back.
    `others` (rows, in) are more rows, or none, that need no gradients: they come along in the same product,
    since to read the weights twice takes longer.
    """

    BLOCKS = 8
    """Parts of the weights' gradient, which threads share."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, others: Tensor, weight: Tensor, bias: Tensor, gradient: Room) -> Pair:
        ctx.save_for_backward(rows, weight)
        ctx.gradient = gradient
        together = torch.cat((rows, others)) if len(others) else rows
        products = _wide_product(together, _one_matrix(weight), bias.flatten())
        by_member = _by_member(products, len(weight))
        # Copies: what is a view can't be activated in place.
        of_rows, of_others = by_member[:, : len(rows)].clone(), by_member[:, len(rows) :].clone()
        ctx.mark_non_differentiable(of_others)
        return of_rows, of_others

    @staticmethod
    def backward(ctx: Any, slopes: Tensor, _of_others: Tensor) -> Any:
        rows, weight = ctx.saved_tensors
        wide = slopes.transpose(0, 1).flatten(1)
        n_blocks = math.gcd(wide.shape[1], _LargeProduct.BLOCKS)
        of_weight = ctx.gradient.like(weight)
        torch.bmm(
            wide.t().reshape(n_blocks, -1, len(rows)),
            rows.expand(n_blocks, -1, -1),
            out=_one_matrix(of_weight).view(n_blocks, -1, rows.shape[1]),
        )
        of_rows = _wide_product(wide, _one_matrix(weight).t())
        return of_rows, None, of_weight, slopes.sum(1, keepdim=True), None


def _one_matrix(weight: Tensor) -> Tensor:
    """Return weights (M, in, out) that lie in memory as (M, out, in) as (M · out, in), without copying."""
    return weight.transpose(1, 2).view(-1, weight.shape[1])


def _by_member(wide: Tensor, n_members: int) -> Tensor:
    """Return products (rows, M · out) as (M, rows, out), without copying."""
    return wide.view(len(wide), n_members, wide.shape[1] // n_members).transpose(0, 1)


LARGE = 2**19
"""Weights of all members of a layer from which on they are kept by output instead of by input."""
WIDE = 2**20
"""Products of weights and rows from which on oneDNN's faster arithmetic outweighs its slower calls."""


def by_output_if_large(weight: Tensor) -> Tensor:
    """Return weights (M, in, out), which lie in memory as (M, out, in) if they are large."""
    if weight.numel() < LARGE:
        return weight
    return weight.transpose(1, 2).contiguous().transpose(1, 2)


@dataclass(slots=True)
class Weights:
    """What a layer multiplies by and adds."""

    weight: Tensor
    """(M, in, out)."""
    bias: Tensor
    """(M, 1, out)."""
    gradient: Room = field(default_factory=Room)
    """For that of the weight, if it is large: see there what this asks of callers."""
    packed: Tensor | None = None
    """A large weight, reordered for passes without gradients."""

    def __reduce__(self) -> tuple[type["Weights"], Pair]:
        """Let copies be made, without what PyTorch can't copy: they compute the same, from the weight."""
        return Weights, (self.weight, self.bias)


def product(features: Tensor, layer: Weights) -> Tensor:
    """Return features (M or 1, rows, in) times the weight, plus the bias: (M, rows, out)."""
    weight, bias = layer.weight, layer.bias
    if _is_wide(features, weight):
        if torch.is_grad_enabled():
            return both_products(features, features[:, :0], layer)[0]
        by_output = _one_matrix(weight) if layer.packed is None else layer.packed
        return _by_member(_wide_product(features[0], by_output, bias.flatten()), len(weight))
    if features.shape[0] != weight.shape[0]:
        features = features.expand(weight.shape[0], -1, -1)
    if weight.is_contiguous() or not torch.is_grad_enabled():
        return torch.baddbmm(bias, features, weight)
    # Such that the gradient lies as the weights do.
    columns = torch.baddbmm(bias.transpose(1, 2), weight.transpose(1, 2), features.transpose(1, 2))
    return columns.transpose(1, 2)


def both_products(features: Tensor, others: Tensor, layer: Weights) -> Pair:
    """Return the product of each, with gradients for the first only."""
    if _is_wide(features, layer.weight):
        arguments = features[0], others[0], layer.weight, layer.bias, layer.gradient
        pair: Pair = _LargeProduct.apply(*arguments)  # type: ignore[no-untyped-call]
        return pair
    of_features = product(features, layer)
    with torch.no_grad():
        return of_features, product(others, layer)


def _is_wide(features: Tensor, weight: Tensor) -> bool:
    """Return whether all members are one matrix here: large, on a CPU, and with the same rows for each."""
    return (
        not weight.is_contiguous()
        and len(features) == 1
        and weight.numel() * features.shape[1] >= WIDE
        and _HAS_ONEDNN
        and weight.device.type == "cpu"
        and weight.dtype == torch.float32
    )


class MemberLinear(nn.Module):
    """M linear layers in one product: (M or 1, rows, in) → (M, rows, out)."""

    def __init__(self, n_members: int, n_in: int, n_out: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(by_output_if_large(uniform((n_members, n_in, n_out), n_in, generator)))
        self.bias = nn.Parameter(uniform((n_members, 1, n_out), n_in, generator))
        # Looking parameters up in modules takes longer than small products do.
        self.weights = Weights(self.weight, self.bias)

    def pack(self, rows: int) -> None:
        """Reorder a copy of large weights for passes without gradients, of about this many rows.

        Whoever changes the parameters must call this again before the next such pass.
        """
        if not self.weight.is_contiguous() and _HAS_ONEDNN and self.weight.device.type == "cpu":
            by_output = _one_matrix(self.weight.detach())
            self.weights.packed = torch.ops.mkldnn._reorder_linear_weight(by_output, rows)

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply layer m to the rows of member m; a leading axis of 1 serves every member."""
        return product(inputs, self.weights)


class Layered(nn.Module):
    """Dense layers with ReLU between them, and after them if `activate_last`."""

    def __init__(self, n_layers: int, *, activate_last: bool) -> None:
        super().__init__()
        self.n_activated = n_layers - (0 if activate_last else 1)

    def weights(self) -> Iterable[Weights]:
        """Return each layer's weights, first to last."""
        raise NotImplementedError

    def forward(self, features: Tensor) -> Tensor:
        """Map features (M or 1, rows, in) to (M, rows, out)."""
        for i, layer in enumerate(self.weights()):
            features = product(features, layer)
            if i < self.n_activated:
                features = features.relu_()
        return features

    def both(self, features: Tensor, others: Tensor) -> Pair:
        """Return what `forward` makes of each, with gradients for the first only."""
        for i, layer in enumerate(self.weights()):
            features, others = both_products(features, others, layer)
            if i < self.n_activated:
                features, others = features.relu_(), others.relu_()
        return features, others


class MemberMLP(Layered):
    """Linear layers of the given sizes with ReLU between them, and after them if `activate_last`."""

    def __init__(
        self, n_members: int, sizes: Sequence[int], generator: torch.Generator, *, activate_last: bool
    ) -> None:
        super().__init__(len(sizes) - 1, activate_last=activate_last)
        layers = [MemberLinear(n_members, n_in, n_out, generator) for n_in, n_out in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        self._weights = [layer.weights for layer in layers]

    def weights(self) -> list[Weights]:
        """Return each layer's weights, first to last."""
        return self._weights


def uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> Tensor:
    """Return U(−1/√fan_in, 1/√fan_in) draws, PyTorch's own initialisation of a layer."""
    bound = 1 / math.sqrt(fan_in)
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)
