"""Dense layers of M members, computed in one batched product.

Activations are (M, rows, features). A leading axis of 1 serves every member.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from ebql.deep.fast import dense
from ebql.deep.fast.dense import Pair, by_output_if_large


@dataclass(slots=True)
class Weights:
    """What a layer multiplies by and adds."""

    weight: Tensor
    """(M, in, out)."""
    bias: Tensor
    """(M, 1, out)."""
    packed: Tensor | None = None
    """A large weight, reordered for passes without gradients."""

    def __reduce__(self) -> tuple[type["Weights"], Pair]:
        """Copy without the packed weight, which PyTorch can't copy; the copy computes the same."""
        return Weights, (self.weight, self.bias)


def product(features: Tensor, layer: Weights, *, is_output: bool = False) -> Tensor:
    """Return features (M or 1, rows, in) times the weight, plus the bias: (M, rows, out).

    Autocast does not round outputs to bfloat16: near 10, its numbers are 0.06 apart.
    """
    if is_output and (device := features.device.type) != "meta" and torch.is_autocast_enabled(device):
        with torch.autocast(device, enabled=False):
            return product(features.float(), layer)
    weight, bias = layer.weight, layer.bias
    if _is_fast(features, weight):
        if torch.is_grad_enabled():
            return both_products(features, features[:, :0], layer)[0]
        return dense.product(features, weight, bias, layer.packed)
    if weight.is_contiguous():
        if len(features) != len(weight):
            features = features.expand(len(weight), -1, -1)
        return torch.baddbmm(bias, features, weight)
    # In these forms, the gradient is stored as the weights are.
    if len(features) == 1:
        return dense.by_member(
            functional.linear(features[0], dense.one_matrix(weight), bias.flatten()), len(weight)
        )
    columns = torch.baddbmm(bias.transpose(1, 2), weight.transpose(1, 2), features.transpose(1, 2))
    return columns.transpose(1, 2)


def both_products(features: Tensor, others: Tensor, layer: Weights, *, is_output: bool = False) -> Pair:
    """Return the product of each, with gradients for the first only."""
    if _is_fast(features, layer.weight):
        return dense.both_products(features, others, layer.weight, layer.bias)
    of_features = product(features, layer, is_output=is_output)
    with torch.no_grad():
        return of_features, product(others, layer, is_output=is_output)


def _is_fast(features: Tensor, weight: Tensor) -> bool:
    """Return whether to compute this product in `fast.dense`; small ones never are."""
    return weight.numel() * features.shape[1] >= dense.WIDE and dense.pays(features, weight)


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

        Call this again after every change of the parameters.
        """
        self.weights.packed = dense.packed(self.weight, rows)

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply layer m to the rows of member m."""
        return product(inputs, self.weights)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu_,  # in place: a layer's output is needed nowhere else
    "tanh": torch.tanh,
    "elu": functional.elu,
    "gelu": functional.gelu,
    "silu": functional.silu,
}
"""What may follow a hidden layer, by the option `activation`."""


class MemberLayerNorm(nn.Module):
    """M layer normalisations (Ba et al., 2016) over features, each with its own scale and shift."""

    def __init__(self, n_members: int, n_features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n_members, 1, n_features))
        self.shift = nn.Parameter(torch.zeros(n_members, 1, n_features))

    def forward(self, features: Tensor) -> Tensor:
        """Normalise features (M, rows, n)."""
        normal = functional.layer_norm(features, features.shape[-1:])
        return torch.addcmul(self.shift, normal, self.scale)


class Layered(nn.Module):
    """Dense layers of the given `sizes` with an activation between them, and after them if `activate_last`.

    With `layer_norm`, what is activated is normalised first.
    """

    def __init__(
        self, n_members: int, sizes: Sequence[int], *, activate_last: bool, activation: str, layer_norm: bool
    ) -> None:
        super().__init__()
        n_layers = len(sizes) - 1
        self.n_activated = n_layers - (0 if activate_last else 1)
        self.activation = activation
        self._activate = ACTIVATIONS[activation]
        self.norms: nn.ModuleList | None = None
        if layer_norm:
            widths = sizes[1 : 1 + self.n_activated]
            self.norms = nn.ModuleList(MemberLayerNorm(n_members, width) for width in widths)

    def weights(self) -> Iterable[Weights]:
        """Return each layer's weights, first to last."""
        raise NotImplementedError

    def forward(self, features: Tensor) -> Tensor:
        """Map features (M or 1, rows, in) to (M, rows, out)."""
        for i, layer in enumerate(self.weights()):
            features = self._activated(i, product(features, layer, is_output=i >= self.n_activated))
        return features

    def both(self, features: Tensor, others: Tensor) -> Pair:
        """Return `forward` of each, with gradients for the first only."""
        for i, layer in enumerate(self.weights()):
            features, others = both_products(features, others, layer, is_output=i >= self.n_activated)
            features = self._activated(i, features)
            with torch.no_grad():
                others = self._activated(i, others)
        return features, others

    def _activated(self, i: int, outputs: Tensor) -> Tensor:
        """Return the outputs of layer `i`, normalised and activated unless it is the last."""
        if i >= self.n_activated:
            return outputs
        if self.norms is not None:
            outputs = self.norms[i](outputs)
        return self._activate(outputs)


class MemberMLP(Layered):
    """Linear layers, as `Layered` describes them."""

    def __init__(
        self,
        n_members: int,
        sizes: Sequence[int],
        generator: torch.Generator,
        *,
        activate_last: bool,
        activation: str = "relu",
        layer_norm: bool = False,
    ) -> None:
        super().__init__(
            n_members, sizes, activate_last=activate_last, activation=activation, layer_norm=layer_norm
        )
        layers = [MemberLinear(n_members, n_in, n_out, generator) for n_in, n_out in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        self._weights = [layer.weights for layer in layers]

    def weights(self) -> list[Weights]:
        """Return each layer's weights, first to last."""
        return self._weights


def uniform(shape: tuple[int, ...], fan_in: int, generator: torch.Generator) -> Tensor:
    """Return samples of U(−1/√fan_in, 1/√fan_in), PyTorch's own initialisation of a layer."""
    bound = 1 / math.sqrt(fan_in)
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)
