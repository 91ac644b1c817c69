"""Products of dense layers on a CPU, by oneDNN.

If the members share their rows, all of them are one wide matrix. Large weights are packed for passes without
gradients.
"""

from typing import Any

import torch
from llvmlite.binding import get_host_cpu_name
from torch import Tensor

from ebql.deep import fast

_HAS_AVX512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
MKL_KEEPS_UP = not (_HAS_AVX512 and get_host_cpu_name().startswith("znver"))
"""Whether MKL, PyTorch's default, multiplies small weights as fast as oneDNN.

MKL uses AVX-512 on Intel's processors only. On AMD's, oneDNN takes half of its time.
"""
LARGE = 2**18 if not MKL_KEEPS_UP else 2**22 if _HAS_AVX512 else 2**20
"""Weights of all members of a layer from which on they are stored by output, for oneDNN.

Where MKL keeps up, smaller weights are stored by input: its products are at least as fast
(benchmarks/dense_layout.py), and an action can skip the inputs that are 0.
"""
WIDE = 2**20
"""Products of weights and rows from which on oneDNN's faster arithmetic outweighs its slower calls.

For weights stored by input eight times as many: PyTorch differentiates their products in fewer calls.
"""

Pair = tuple[Tensor, Tensor]


def by_output_if_large(weight: Tensor) -> Tensor:
    """Return weights (M, in, out), stored as (M, out, in) if they are large."""
    if weight.numel() < LARGE or not fast.enabled():
        return weight
    return weight.transpose(1, 2).contiguous().transpose(1, 2)


def pays(features: Tensor, weight: Tensor) -> bool:
    """Return whether oneDNN is faster for a product that is wide, on a CPU.

    Never in bfloat16, which PyTorch's own products take from the context.
    """
    return (
        (is_by_output(weight) or _is_faster_by_input(features, weight))
        and _has_onednn(weight)
        and weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
    )


def _is_faster_by_input(features: Tensor, weight: Tensor) -> bool:
    """Return the same for weights stored by input, where several members are not one matrix."""
    return not MKL_KEEPS_UP and len(weight) == 1 and weight.numel() * features.shape[1] >= 8 * WIDE


def is_by_output(weight: Tensor) -> bool:
    """Return whether weights (M, in, out) are stored as (M, out, in)."""
    return not weight.is_contiguous()


def packed(weight: Tensor, rows: int) -> Tensor | None:
    """Return large weights reordered for passes without gradients, of about `rows` rows; None if small."""
    if not is_by_output(weight) or not _has_onednn(weight):
        return None
    reordered: Tensor = torch.ops.mkldnn._reorder_linear_weight(one_matrix(weight.detach()), rows)
    return reordered


def product(features: Tensor, weight: Tensor, bias: Tensor, reordered: Tensor | None) -> Tensor:
    """Return features (M or 1, rows, in) times weights (M, in, out) plus bias (M, 1, out): (M, rows, out).

    Without gradients.
    """
    if len(features) == 1 and reordered is not None:
        return by_member(_linear(features[0], reordered, bias.flatten()), len(weight))
    return _products(features, weight, bias)


def both_products(features: Tensor, others: Tensor, weight: Tensor, bias: Tensor) -> Pair:
    """Return the product of each, with gradients for the first only."""
    pair: Pair = _BothProducts.apply(features, others, weight, bias)  # type: ignore[no-untyped-call]
    return pair


class _BothProducts(torch.autograd.Function):
    """Rows (B, rows, in) times weights (M, in, out): B is 1 for rows that the members share, and else M.

    Members that share rows are one matrix of M · out rows, so the backward pass sums nothing over members.
    `others` (B, rows, in) are more rows, or none, that need no gradients. They share the product, because
    reading the weights twice takes longer.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, others: Tensor, weight: Tensor, bias: Tensor) -> Pair:
        ctx.save_for_backward(rows, weight)
        n = rows.shape[1]
        products = _products(torch.cat((rows, others), 1) if others.shape[1] else rows, weight, bias)
        # Copies, because a view can't be activated in place.
        of_rows, of_others = products[:, :n].clone(), products[:, n:].clone()
        ctx.mark_non_differentiable(of_others)
        return of_rows, of_others

    @staticmethod
    def backward(ctx: Any, slopes: Tensor, _of_others: Tensor) -> Any:
        rows, weight = ctx.saved_tensors
        of_bias = slopes.sum(1, keepdim=True)
        if len(rows) < len(weight):
            slopes = slopes.transpose(0, 1).flatten(1).unsqueeze(0)
        of_rows = None
        if ctx.needs_input_grad[0]:
            blocks = zip(slopes, _blocks(weight, len(rows)), strict=True)
            of_rows = _stacked([_linear(own, by_output.t()) for own, by_output in blocks])
        return of_rows, None, _gradient(rows, slopes, weight), of_bias


def _products(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return rows (B, rows, in) times weights (M, in, out) plus bias (M, 1, out): (M, rows, out)."""
    blocks = zip(rows, _blocks(weight, len(rows)), bias.view(len(rows), -1), strict=True)
    products = _stacked([_linear(*block) for block in blocks])
    return products if len(products) == len(weight) else by_member(products[0], len(weight))


def _gradient(rows: Tensor, slopes: Tensor, weight: Tensor) -> Tensor:
    """Return the gradient of weights (M, in, out), stored as they are, by slopes (B, rows, M · out / B)."""
    if len(rows) > 1:
        return torch.bmm(slopes.transpose(1, 2), rows).transpose(1, 2)
    inputs, wide = rows[0].t(), slopes[0].t()
    # oneDNN sums fastest over many rows if inputs are the last axis, and reordering few weights is cheap.
    if is_by_output(weight) or inputs.shape[1] > len(inputs):
        by_output = _linear(wide, inputs).view(len(weight), -1, len(inputs)).transpose(1, 2)
        return by_output if is_by_output(weight) else by_output.contiguous()
    return _linear(inputs, wide).unsqueeze(0)


def _stacked(blocks: list[Tensor]) -> Tensor:
    """Return the blocks on a new first axis; one block is not copied."""
    return blocks[0].unsqueeze(0) if len(blocks) == 1 else torch.stack(blocks)


def _linear(rows: Tensor, by_output: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return rows (n, in) times weights (out, in), as they are or packed, plus a bias (out,): (n, out).

    For the few rows of a batch and with AVX2, oneDNN reaches three quarters of the machine's peak, and nine
    tenths with packed weights. The library behind `@` reaches two thirds.
    """
    result: Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, by_output, bias, "none", [], "")
    return result


def _blocks(weight: Tensor, n_blocks: int) -> Tensor:
    """Return weights (M, in, out) as a view (blocks, M · out / blocks, in): one block, or one per member."""
    return weight.transpose(1, 2) if len(weight) == n_blocks else one_matrix(weight).unsqueeze(0)


def one_matrix(weight: Tensor) -> Tensor:
    """Return weights (M, in, out) stored as (M, out, in) as a view (M · out, in)."""
    return weight.transpose(1, 2).view(-1, weight.shape[1])


def by_member(wide: Tensor, n_members: int) -> Tensor:
    """Return products (rows, M · out) as a view (M, rows, out)."""
    return wide.view(len(wide), n_members, wide.shape[1] // n_members).transpose(0, 1)


def _has_onednn(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and fast.HAS_ONEDNN and fast.enabled()
