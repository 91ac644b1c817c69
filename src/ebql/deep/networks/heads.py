"""Two parts of Rainbow that change the dense layers: noise on the weights, and dueling streams.

Both take activations (M, rows, features) with a leading axis of members, like every layer.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ebql.deep.fast.dense import Pair, by_output_if_large
from ebql.deep.networks.layers import Layered, MemberMLP, Weights, uniform

_LARGE = 2**16  # weights from which on a custom autograd function saves more than it costs


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

    def noisy(self) -> Pair:
        """Return weight and bias with the current noise: μ + σ ⊙ ε_in ε_outᵀ."""
        weight = torch.addcmul(self.weight, self.weight_scale, self.noise_in * self.noise_out)
        return weight, torch.addcmul(self.bias, self.bias_scale, self.noise_out)


class NoiseCache(NamedTuple):
    """A noisy layer's weights with their noise, kept until the noise or the parameters change."""

    noise: Tensor
    """ε_in ε_outᵀ."""
    weight: Tensor
    bias: Tensor
    of_scale: Tensor
    """For the gradient of a large weight's scale; each gradient overwrites the one before."""

    @classmethod
    def of(cls, layer: NoisyLayer) -> "NoiseCache":
        """Return an empty cache for this layer."""
        like = torch.empty_like
        return cls(like(layer.weight), like(layer.weight), like(layer.bias), like(layer.weight))

    def refresh(self, layer: NoisyLayer) -> None:
        """Recompute the weights in place: large fresh arrays cost more than the arithmetic."""
        torch.mul(layer.noise_in, layer.noise_out, out=self.noise)
        torch.addcmul(layer.weight, layer.weight_scale, self.noise, out=self.weight)
        torch.addcmul(layer.bias, layer.bias_scale, layer.noise_out, out=self.bias)

    def noisy(self, layer: NoisyLayer) -> Weights:
        """Return `layer.noisy()` from the cache, for a pass with gradients."""
        if self.weight.numel() < _LARGE:
            weight = torch.addcmul(layer.weight, layer.weight_scale, self.noise)
            return Weights(weight, torch.addcmul(layer.bias, layer.bias_scale, layer.noise_out))
        pair: Pair = _CachedNoise.apply(self, layer.noise_out, *layer[:4])  # type: ignore[no-untyped-call]
        return Weights(*pair)


class _CachedNoise(torch.autograd.Function):
    """The cached weight and bias, with gradients for means and scales."""

    @staticmethod
    def forward(ctx: Any, cache: NoiseCache, noise_out: Tensor, *_parameters: Tensor) -> Pair:
        ctx.save_for_backward(cache.noise, noise_out)
        ctx.of_scale = cache.of_scale
        return cache.weight.detach(), cache.bias.detach()

    @staticmethod
    def backward(ctx: Any, of_weight: Tensor, of_bias: Tensor) -> Any:
        noise, noise_out = ctx.saved_tensors
        of_scale = torch.mul(of_weight, noise, out=ctx.of_scale)
        return None, None, of_weight, of_scale, of_bias, of_bias * noise_out


class NoisyMLP(Layered):
    """Linear layers with learnt, factorised Gaussian noise on their weights (Fortunato et al., 2018).

    Each member has its own noise, the same for all rows, which stays until the next `resample`.
    """

    def __init__(
        self,
        n_members: int,
        sizes: Sequence[int],
        generator: torch.Generator,
        *,
        activate_last: bool,
        noise_scale: float,
        activation: str = "relu",
        layer_norm: bool = False,
    ) -> None:
        super().__init__(
            n_members, sizes, activate_last=activate_last, activation=activation, layer_norm=layer_norm
        )
        self._pairs = list(pairwise(sizes))
        self.means, self.scales = nn.ParameterList(), nn.ParameterList()
        for n_in, n_out in self._pairs:
            bound = 1 / math.sqrt(n_in)
            weight, bias = ((n_members, size, n_out) for size in (n_in, 1))
            self.means += by_output_if_large(uniform(weight, n_in, generator)), uniform(bias, n_in, generator)
            self.scales += [torch.full_like(mean, noise_scale * bound) for mean in self.means[-2:]]
        n_draws = sum(n_in + n_out for n_in, n_out in self._pairs)
        self.register_buffer("noise", torch.zeros(n_members, n_draws))
        self.noise_off = False
        """Whether to leave the noise out."""
        # Looking parameters up in modules takes longer than these small products do.
        both = list(zip(self.means, self.scales, strict=True))
        self._parameters_of_layers = list(zip(both[::2], both[1::2], strict=True))
        self._cache: list[NoiseCache] | None = None

    def resample(self, generator: torch.Generator) -> None:
        """Draw new noise: ε = sign(x) √|x| of normal x for each input and output of each layer."""
        noise: Tensor = self.get_buffer("noise")
        draws = torch.randn(noise.shape, generator=generator)
        noise.copy_(draws.sign() * draws.abs().sqrt())
        if self._cache is not None:
            self.refresh_cache()

    def layers(self) -> list[NoisyLayer]:
        """Return the layers, first to last."""
        noise, layers, start = self.get_buffer("noise"), [], 0
        for (n_in, n_out), (weights, biases) in zip(self._pairs, self._parameters_of_layers, strict=True):
            middle, end = start + n_in, start + n_in + n_out
            noise_in, noise_out = noise[:, start:middle, None], noise[:, None, middle:end]
            layers.append(NoisyLayer(*weights, *biases, noise_in, noise_out))
            start = end
        return layers

    def refresh_cache(self) -> None:
        """Keep the weights with their noise from now on, so that a pass does not compute them again.

        Call this again after every change of the parameters; `resample` does so itself.
        """
        layers = self.layers()
        with torch.no_grad():
            if self._cache is None:
                self._cache = [NoiseCache.of(layer) for layer in layers]
            for layer, cache in zip(layers, self._cache, strict=True):
                cache.refresh(layer)

    def weights(self) -> list[Weights]:
        """Return each layer's weights, with their noise unless it is off."""
        if self.noise_off:
            return [Weights(layer.weight, layer.bias) for layer in self.layers()]
        if self._cache is None:
            return [Weights(*layer.noisy()) for layer in self.layers()]
        if not torch.is_grad_enabled():
            return [Weights(cache.weight, cache.bias) for cache in self._cache]
        return [cache.noisy(layer) for cache, layer in zip(self._cache, self.layers(), strict=True)]


def dueling(values: Tensor, advantages: Tensor, n_actions: int) -> Tensor:
    """Return V + A − the mean of A over actions (Wang et al., 2016), (M, rows, A Z).

    `values` are (M, rows, Z) and `advantages` (M, rows, A Z); Z is 1 without atoms. Without subtracting the
    mean, a constant could move between the streams.
    """
    by_action = advantages.view(*values.shape[:-1], n_actions, values.shape[-1])
    both = values.unsqueeze(-2) + by_action - by_action.mean(-2, keepdim=True)
    return both.flatten(-2)


MLP = MemberMLP | NoisyMLP


def midpoints(n: int, device: torch.device | None = None) -> Tensor:
    """Return n fractions (n,) in the middle of n equal parts of [0, 1]: (2 i + 1) / 2 n."""
    return (torch.arange(n, device=device) + 0.5) / n


class FractionEmbedding(nn.Module):
    """Turns features of a state into features of its quantiles (IQN, Dabney et al., 2018b, equation 4).

    Features are multiplied by ReLU(Σᵢ cos(π i τ) wᵢ + b), i = 0 … 63, for each fraction τ. `n_default`
    midpoints are used where no fractions are given.
    """

    N_COSINES = 64

    def __init__(self, dense: MLP, n_default: int) -> None:
        super().__init__()
        self.dense, self._n_default = dense, n_default

    def forward(self, features: Tensor, fractions: Tensor | None, blocks: int) -> tuple[Tensor, int]:
        """Map features (M, R, n) and fractions (rows, N), in M blocks or one, to (M, R N, n) and N.

        The N fractions of a row come one after the other.
        """
        n_rows = blocks * features.shape[1]
        if fractions is None:
            fractions = midpoints(self._n_default, features.device).expand(n_rows, -1)
        multiples = torch.arange(self.N_COSINES, device=features.device) * math.pi
        cosines = (fractions.reshape(blocks, -1, 1) * multiples).cos()
        embedded, n_fractions = self.dense.forward(cosines), fractions.shape[1]
        embedded = embedded.reshape(len(embedded), -1, n_fractions, embedded.shape[-1])
        return (features.unsqueeze(2) * embedded).flatten(1, 2), n_fractions


class DuelingHeads(nn.Module):
    """One stream for the state's value and one for the actions' advantages, joined by `dueling`."""

    def __init__(self, value: MLP, advantage: MLP, n_actions: int) -> None:
        super().__init__()
        self.value, self.advantage, self._n_actions = value, advantage, n_actions

    def forward(self, features: Tensor) -> Tensor:
        """Map (K or 1, rows, features) to (K, rows, A Z)."""
        return dueling(self.value.forward(features), self.advantage.forward(features), self._n_actions)

    def both(self, features: Tensor, others: Tensor) -> Pair:
        """Return `forward` of each, with gradients for the first only."""
        values, advantages = self.value.both(features, others), self.advantage.both(features, others)
        of_features, of_others = (
            dueling(*streams, self._n_actions) for streams in zip(values, advantages, strict=True)
        )
        return of_features, of_others
