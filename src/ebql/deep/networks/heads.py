"""Two parts of Rainbow that change the dense layers: noise on the weights, and two streams.

Both work on activations (M, rows, features) with a leading axis of members, like every layer here.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ebql.deep.fast.dense import Layered, Pair, Room, Weights, by_output_if_large, uniform

_WORTH_A_FUNCTION = 2**16  # weights from which on a function of one's own costs less than it saves


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
    """For those of the weight, if it is large, and of its scale."""

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

    def drawn(self, layer: NoisyLayer) -> Weights:
        """Return what `layer.drawn` does, from what is held, for a pass with gradients."""
        if self.weight.numel() < _WORTH_A_FUNCTION:
            weight = torch.addcmul(layer.weight, layer.weight_scale, self.noise)
            return Weights(weight, torch.addcmul(layer.bias, layer.bias_scale, layer.noise_out))
        pair: Pair = _HeldDraw.apply(self, layer.noise_out, *layer[:4])  # type: ignore[no-untyped-call]
        return Weights(*pair, self.gradients[0])


class _HeldDraw(torch.autograd.Function):
    """Weight and bias as they are held, with gradients for means and scales; the draw itself is free."""

    @staticmethod
    def forward(ctx: Any, held: Held, noise_out: Tensor, *_parameters: Tensor) -> Pair:
        ctx.save_for_backward(held.noise, noise_out)
        ctx.room = held.gradients[1]
        return held.weight.detach(), held.bias.detach()

    @staticmethod
    def backward(ctx: Any, of_weight: Tensor, of_bias: Tensor) -> Any:
        noise, noise_out = ctx.saved_tensors
        of_scale = torch.mul(of_weight, noise, out=ctx.room.like(noise))
        return None, None, of_weight, of_scale, of_bias, of_bias * noise_out


class NoisyMLP(Layered):
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
        super().__init__(len(sizes) - 1, activate_last=activate_last)
        self._pairs = list(pairwise(sizes))
        self.means, self.scales = nn.ParameterList(), nn.ParameterList()
        for n_in, n_out in self._pairs:
            bound = 1 / math.sqrt(n_in)
            weight, bias = ((n_members, size, n_out) for size in (n_in, 1))
            self.means += by_output_if_large(uniform(weight, n_in, generator)), uniform(bias, n_in, generator)
            self.scales += [torch.full_like(mean, noise_scale * bound) for mean in self.means[-2:]]
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

    def weights(self) -> list[Weights]:
        """Return each layer's weights, with their noise unless it is left out."""
        if self.quiet:
            return [Weights(layer.weight, layer.bias) for layer in self.layers()]
        if self._held is None:
            return [Weights(*layer.drawn()) for layer in self.layers()]
        if not torch.is_grad_enabled():
            return [Weights(held.weight, held.bias) for held in self._held]
        return [held.drawn(layer) for held, layer in zip(self._held, self.layers(), strict=True)]


def dueling(values: Tensor, advantages: Tensor, n_actions: int) -> Tensor:
    """Return what both streams (Wang et al., 2016) say together: V + A − the mean of A over actions.

    `values` are (M, rows, Z) and `advantages` (M, rows, A Z), with Z = 1 where there are no atoms; so is
    the result. Without the mean taken off, a constant could move between the streams.
    """
    by_action = advantages.view(*values.shape[:-1], n_actions, values.shape[-1])
    both = values.unsqueeze(-2) + by_action - by_action.mean(-2, keepdim=True)
    return both.flatten(-2)
