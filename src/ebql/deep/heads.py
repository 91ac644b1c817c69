"""Two parts of Rainbow that change the dense layers: noise on the weights, and two streams.

Both work on activations (M, rows, features) with a leading axis of members, like every layer here.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ebql.deep.dense import Pair, Room


class NoisyLayer(NamedTuple):
    """A noisy layer's parameters, weights (M, in, out) and biases (M, 1, out), and its noise."""

    weight: Tensor
    weight_scale: Tensor
    bias: Tensor
    bias_scale: Tensor
    noise_in: Tensor
    """(M, in, 1)."""
    noise_out: Tensor
    """(M, 1, out)."""

    def drawn(self) -> Pair:
        """Return weight and bias with the noise of the last draw: μ + σ ⊙ ε_in ε_outᵀ."""
        weight = torch.addcmul(self.weight, self.weight_scale, self.noise_in * self.noise_out)
        return weight, torch.addcmul(self.bias, self.bias_scale, self.noise_out)


class Held(NamedTuple):
    """What a noisy layer keeps until its noise or its parameters change, of their shapes."""

    noise: Tensor
    """ε_in ε_outᵀ."""
    weight: Tensor
    bias: Tensor
    gradients: tuple[Room, Room]
    """For those of weight and weight_scale."""

    @classmethod
    def of(cls, layer: NoisyLayer) -> "Held":
        """Return room for what `renew` computes."""
        like = torch.empty_like
        return cls(like(layer.weight), like(layer.weight), like(layer.bias), (Room(), Room()))

    def renew(self, layer: NoisyLayer) -> None:
        """Compute it anew, in place: large fresh arrays cost more than the arithmetic."""
        torch.mul(layer.noise_in, layer.noise_out, out=self.noise)
        torch.addcmul(layer.weight, layer.weight_scale, self.noise, out=self.weight)
        torch.addcmul(layer.bias, layer.bias_scale, layer.noise_out, out=self.bias)


class _HeldProduct(torch.autograd.Function):
    """A noisy layer from what it holds: forward as cheap as without noise, back without a fresh array."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, held: Held, layer: NoisyLayer, *_parameters: Tensor) -> Tensor:
        ctx.save_for_backward(features, held.weight, held.noise, layer.noise_out)
        ctx.gradients = held.gradients
        return torch.baddbmm(held.bias, features, held.weight)

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> Any:
        features, weight, noise, noise_out = ctx.saved_tensors
        of_weight, of_scale = (gradient.like(weight) for gradient in ctx.gradients)
        torch.bmm(features.transpose(1, 2), slopes, out=of_weight)
        torch.mul(of_weight, noise, out=of_scale)
        of_bias = slopes.sum(1, keepdim=True)
        of_features = slopes @ weight.transpose(1, 2)
        return of_features, None, None, of_weight, of_scale, of_bias, of_bias * noise_out


class NoisyMLP(nn.Module):
    """Linear layers with learnt, factorised Gaussian noise on their weights (Fortunato et al., 2018).

    ReLU lies between the layers, and after them if `activate_last`. Each member has a noise of its own,
    the same for all rows, which stays until the next `resample`.
    """

    def __init__(
        self,
        n_members: int,
        sizes: Sequence[int],
        generator: torch.Generator,
        *,
        activate_last: bool,
        noise_scale: float,
    ) -> None:
        super().__init__()
        self._n_members = n_members
        self._pairs = list(pairwise(sizes))
        self._n_activated = len(self._pairs) - (0 if activate_last else 1)
        self.means, self.scales = nn.ParameterList(), nn.ParameterList()
        for n_in, n_out in self._pairs:
            bound = 1 / math.sqrt(n_in)
            for shape in ((n_members, n_in, n_out), (n_members, 1, n_out)):
                self.means.append(torch.empty(shape).uniform_(-bound, bound, generator=generator))
                self.scales.append(torch.full(shape, noise_scale * bound))
        n_draws = sum(n_in + n_out for n_in, n_out in self._pairs)
        self.register_buffer("noise", torch.zeros(n_members, n_draws))
        self.quiet = False
        """Whether the noise is left out."""
        # Looking parameters up in modules takes longer than these small products do.
        both = list(zip(self.means, self.scales, strict=True))
        self._parameters_of_layers = list(zip(both[::2], both[1::2], strict=True))
        self._held: list[Held] | None = None

    def resample(self, generator: torch.Generator) -> None:
        """Draw new noise: ε = sign(x) √|x| of normal x for each input and output of each layer."""
        noise: Tensor = self.get_buffer("noise")
        draws = torch.randn(noise.shape, generator=generator)
        noise.copy_(draws.sign() * draws.abs().sqrt())
        if self._held is not None:
            self.hold()

    def layers(self) -> list[NoisyLayer]:
        """Return the layers, first to last."""
        noise, layers, start = self.get_buffer("noise"), [], 0
        for (n_in, n_out), (weights, biases) in zip(self._pairs, self._parameters_of_layers, strict=True):
            middle, end = start + n_in, start + n_in + n_out
            noise_in, noise_out = noise[:, start:middle, None], noise[:, None, middle:end]
            layers.append(NoisyLayer(*weights, *biases, noise_in, noise_out))
            start = end
        return layers

    def hold(self) -> None:
        """From now on keep the weights with their noise: a pass then costs no more for it.

        Whoever changes the parameters must call this again before the next pass; `resample` does so itself.
        """
        layers = self.layers()
        with torch.no_grad():
            if self._held is None:
                self._held = [Held.of(layer) for layer in layers]
            for layer, held in zip(layers, self._held, strict=True):
                held.renew(layer)

    def forward(self, features: Tensor) -> Tensor:
        """Map (M or 1, rows, sizes[0]) to (M, rows, sizes[-1])."""
        if self._pairs:
            features = features.expand(self._n_members, -1, -1)
        for i, layer in enumerate(self.layers()):
            features = self._product(features, layer, None if self._held is None else self._held[i])
            if i < self._n_activated:
                features = features.relu_()
        return features

    def _product(self, features: Tensor, layer: NoisyLayer, held: Held | None) -> Tensor:
        if self.quiet:
            return torch.baddbmm(layer.bias, features, layer.weight)
        if held is None:
            weight, bias = layer.drawn()
            return torch.baddbmm(bias, features, weight)
        if not torch.is_grad_enabled():
            return torch.baddbmm(held.bias, features, held.weight)
        parameters = layer[:4]  # those that gradients are for
        product: Tensor = _HeldProduct.apply(features, held, layer, *parameters)  # type: ignore[no-untyped-call]
        return product


def dueling(values: Tensor, advantages: Tensor, n_actions: int) -> Tensor:
    """Return what both streams (Wang et al., 2016) say together: V + A − the mean of A over actions.

    `values` are (M, rows, Z) and `advantages` (M, rows, A Z), with Z = 1 where there are no atoms; so is
    the result. Without the mean taken off, a constant could move between the streams.
    """
    by_action = advantages.view(*values.shape[:-1], n_actions, values.shape[-1])
    both = values.unsqueeze(-2) + by_action - by_action.mean(-2, keepdim=True)
    return both.flatten(-2)
