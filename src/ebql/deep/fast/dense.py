"""Products of large dense layers on a CPU, by oneDNN: all members as one wide matrix.

Weights are packed for passes without gradients.
"""

import math
from typing import Any

import torch
from torch import Tensor

from ebql.deep import fast

LARGE = 2**22 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 2**20
"""Weights of all members of a layer from which on they are stored by output instead of by input.

MKL's products of smaller weights stored by input are at least as fast (benchmarks/dense_layout.py), and only
these can be multiplied by the one row of an action in compiled code.
"""
WIDE = 2**20
"""Products of weights and rows from which on oneDNN's faster arithmetic outweighs its slower calls."""

Pair = tuple[Tensor, Tensor]


class GradientBuffer:
    """Memory for a layer's gradient; each gradient overwrites the one before.

    Getting the pages of a fresh array takes as long as computing the gradient. So a gradient is valid until
    the next backward pass, and a layer may appear only once in a graph with gradients.
    """

    def __init__(self) -> None:
        self._tensor: Tensor | None = None

    def like(self, tensor: Tensor) -> Tensor:
        """Return the buffer for a gradient of this tensor."""
        if self._tensor is None or _layout(self._tensor) != _layout(tensor):
            self._tensor = torch.empty_like(tensor)
        return self._tensor


def _layout(tensor: Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return tensor.shape, tensor.dtype, tensor.device


def by_output_if_large(weight: Tensor) -> Tensor:
    """Return weights (M, in, out), stored as (M, out, in) if they are large."""
    if weight.numel() < LARGE or not fast.enabled():
        return weight
    return weight.transpose(1, 2).contiguous().transpose(1, 2)


def pays(features: Tensor, weight: Tensor) -> bool:
    """Return whether large weights are one matrix here: on a CPU, and with the same rows for each member.

    Never in bfloat16, which PyTorch's own products take from the context.
    """
    return (
        len(features) == 1
        and weight.numel() * features.shape[1] >= WIDE
        and _has_onednn(weight)
        and weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
    )


def packed(weight: Tensor, rows: int) -> Tensor | None:
    """Return large weights reordered for passes without gradients, of about `rows` rows; None if small."""
    if weight.is_contiguous() or not _has_onednn(weight):
        return None
    reordered: Tensor = torch.ops.mkldnn._reorder_linear_weight(_one_matrix(weight.detach()), rows)
    return reordered


def product(features: Tensor, weight: Tensor, bias: Tensor, reordered: Tensor | None) -> Tensor:
    """Return features (1, rows, in) times weights (M, in, out) plus bias (M, 1, out), without gradients."""
    by_output = _one_matrix(weight) if reordered is None else reordered
    return _by_member(_wide_product(features[0], by_output, bias.flatten()), len(weight))


def both_products(
    features: Tensor, others: Tensor, weight: Tensor, bias: Tensor, buffer: GradientBuffer
) -> Pair:
    """Return the product of each, with gradients for the first only."""
    pair: Pair = _LargeProduct.apply(features[0], others[0], weight, bias, buffer)  # type: ignore[no-untyped-call]
    return pair


class _LargeProduct(torch.autograd.Function):
    """Rows (rows, in) that all members share, times weights (M, in, out) stored as (M, out, in).

    All members are one matrix of M · out rows, so the backward pass sums nothing over members. `others`
    (rows, in) are more rows, or none, that need no gradients. They share the product, because reading the
    weights twice takes longer.
    """

    BLOCKS = 8
    """Parts of the weights' gradient that threads share."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, others: Tensor, weight: Tensor, bias: Tensor, gradient: GradientBuffer
    ) -> Pair:
        ctx.save_for_backward(rows, weight)
        ctx.gradient = gradient
        together = torch.cat((rows, others)) if len(others) else rows
        products = _wide_product(together, _one_matrix(weight), bias.flatten())
        by_member = _by_member(products, len(weight))
        # Copies, because a view can't be activated in place.
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


def _wide_product(rows: Tensor, by_output: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return rows (n, in) times weights (out, in), as they are or packed, plus a bias (out,): (n, out).

    For the few rows of a batch and without AVX-512, oneDNN reaches three quarters of the machine's peak, and
    nine tenths with packed weights. The library behind `@` reaches two thirds.
    """
    result: Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, by_output, bias, "none", [], "")
    return result


def _one_matrix(weight: Tensor) -> Tensor:
    """Return weights (M, in, out) stored as (M, out, in) as a view (M · out, in)."""
    return weight.transpose(1, 2).view(-1, weight.shape[1])


def _by_member(wide: Tensor, n_members: int) -> Tensor:
    """Return products (rows, M · out) as a view (M, rows, out)."""
    return wide.view(len(wide), n_members, wide.shape[1] // n_members).transpose(0, 1)


def _has_onednn(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and fast.HAS_ONEDNN and fast.enabled()
