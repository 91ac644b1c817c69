"""Q-networks of K members, computed together: no layer loops over members.

A layer of K members is one `(K, in, out)` parameter and one product. Activations are
`(M, rows, features)` with a leading axis of members: M is 1 while the members still share everything,
and K from the first layer that they own. Rows may also come as `blocks`, one after the other, of which
each member gets its own: then the axis of members divides the rows, and nothing is computed in vain.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ebql.deep.fast.dense import MemberLinear, MemberMLP, Pair, uniform
from ebql.deep.networks.heads import NoisyMLP, dueling
from ebql.deep.networks.observations import ObservationSpec


class Flatten(nn.Module):
    """Vectors as they are."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    def forward(self, observations: Tensor, blocks: int = 1) -> Tensor:
        """Map observations (rows, …) to features (blocks, rows / blocks, n_features)."""
        return observations.reshape(blocks, len(observations) // blocks, self.n_features)


class MinAtarConvolution(nn.Module):
    """One 3×3 convolution with 16 filters, as in Young and Tian's MinAtar DQN.

    Written as one product over the image's patches: for images this small, that takes half the time of a
    convolution call, and K torsos are the same batched product as every other layer.
    """

    FILTERS, SIDE = 16, 3

    def __init__(self, n_members: int, shape: tuple[int, int, int], generator: torch.Generator) -> None:
        super().__init__()
        height, width, channels = shape
        self._patches = (height - self.SIDE + 1, width - self.SIDE + 1)
        self.convolution = MemberLinear(n_members, self.SIDE**2 * channels, self.FILTERS, generator)
        self.n_features = math.prod(self._patches) * self.FILTERS

    def forward(self, images: Tensor, blocks: int = 1) -> Tensor:
        """Map images (rows, height, width, channels) to features (M, rows / blocks, n_features)."""
        rows, _, width, channels = images.shape
        # A row of a patch is contiguous in memory, so all patches are one strided view: one copy.
        by_row, by_column = width * channels, channels
        patches = images.contiguous().as_strided(
            (rows, *self._patches, self.SIDE, self.SIDE * channels),
            (images[0].numel(), by_row, by_column, by_row, 1),
        )
        filtered = self.convolution(patches.reshape(blocks, -1, self.SIDE**2 * channels))
        return torch.relu_(filtered).reshape(-1, rows // blocks, self.n_features)


class NatureConvolutions(nn.Module):
    """The three convolutions of Mnih et al. (2015); K unshared torsos are groups of channels."""

    LAYERS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    """(filters, side, stride) of each convolution."""

    def __init__(self, n_members: int, shape: tuple[int, int, int], generator: torch.Generator) -> None:
        super().__init__()
        height, width, channels = shape
        self._n_members = n_members
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        n_in = channels
        for filters, side, stride in self.LAYERS:
            n_out, fan_in = n_members * filters, n_in * side**2
            weight = uniform((n_out, n_in, side, side), fan_in, generator)
            # Channels last, as the images are: a convolution would else reorder its weights at every call.
            self.weights.append(nn.Parameter(weight.contiguous(memory_format=torch.channels_last)))
            self.biases.append(nn.Parameter(uniform((n_out,), fan_in, generator)))
            height, width = (height - side) // stride + 1, (width - side) // stride + 1
            n_in = filters  # a group sees its own member's filters
        self.n_features = n_in * height * width

    def forward(self, images: Tensor, blocks: int = 1) -> Tensor:
        """Map images (rows, height, width, channels) to features (M, rows / blocks, n_features)."""
        by_block = images.reshape(blocks, -1, *images.shape[1:])
        features = by_block.permute(1, 0, 4, 2, 3).flatten(1, 2)  # a block is a group of channels
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            stride, groups = self.LAYERS[i][2], self._n_members if i else blocks
            features = torch.conv2d(features, weight, bias, stride, groups=groups).relu_()
        # As the pixels lie in memory, channels last: to reorder them costs as much as a layer's ReLU.
        by_pixel = features.permute(0, 2, 3, 1)
        by_member = by_pixel.reshape(*by_pixel.shape[:3], self._n_members, -1).permute(3, 0, 1, 2, 4)
        return by_member.reshape(self._n_members, len(features), self.n_features)


class SmallConvolutions(nn.Module):
    """The two convolutions of van Hasselt et al.'s data-efficient Rainbow (2019): a sixth of Nature's work.

    Their patches don't overlap: to cut them out is to reorder pixels, and each convolution is one product.
    """

    FILTERS, SIDE = (32, 64), 5

    def __init__(self, n_members: int, shape: tuple[int, int, int], generator: torch.Generator) -> None:
        super().__init__()
        height, width, n_in = shape
        self._products: list[MemberLinear] = []
        for filters in self.FILTERS:
            self._products.append(MemberLinear(n_members, self.SIDE**2 * n_in, filters, generator))
            height, width, n_in = height // self.SIDE, width // self.SIDE, filters
        self.layers = nn.ModuleList(self._products)
        self.n_features = height * width * n_in

    def forward(self, images: Tensor, blocks: int = 1) -> Tensor:
        """Map images (rows, height, width, channels) to features (M, rows / blocks, n_features)."""
        rows = len(images) // blocks
        features = images.reshape(blocks, rows, *images.shape[1:])
        for layer in self._products:
            n_members, _, height, width, channels = features.shape
            down, across = height // self.SIDE, width // self.SIDE
            cropped = features[:, :, : down * self.SIDE, : across * self.SIDE]
            grid = cropped.reshape(n_members, rows, down, self.SIDE, across, self.SIDE * channels)
            patches = grid.transpose(3, 4).reshape(n_members, -1, self.SIDE**2 * channels)
            features = layer.forward(patches).relu_().view(-1, rows, down, across, layer.weight.shape[-1])
        return features.reshape(-1, rows, self.n_features)


MLP = MemberMLP | NoisyMLP


class DuelingHeads(nn.Module):
    """One stream for the state, one for the actions, joined by `dueling`."""

    def __init__(self, value: MLP, advantage: MLP, n_actions: int) -> None:
        super().__init__()
        self.value, self.advantage, self._n_actions = value, advantage, n_actions

    def forward(self, features: Tensor) -> Tensor:
        """Map (K or 1, rows, features) to (K, rows, A Z)."""
        return dueling(self.value.forward(features), self.advantage.forward(features), self._n_actions)

    def both(self, features: Tensor, others: Tensor) -> Pair:
        """Return what `forward` makes of each, with gradients for the first only."""
        values, advantages = self.value.both(features, others), self.advantage.both(features, others)
        of_features, of_others = (
            dueling(*streams, self._n_actions) for streams in zip(values, advantages, strict=True)
        )
        return of_features, of_others


class QNetwork(nn.Module):
    """K members' action values, from a torso that they share, or from one torso each.

    `hidden` are the dense layers after the torso's convolutions (all of them, for vectors). The last
    `own_layers` of them belong to each member, the rest to the torso: 1 is the authors' choice for Atari
    (shared convolutions; own hidden layer and own output), 0 leaves the members only linear read-outs,
    whose cost hardly grows with K. With `atoms`, each action has that many outputs; with a `noise_scale`,
    every dense layer is noisy; with `dueling`, what each member owns exists twice, once for each stream.
    """

    def __init__(
        self,
        spec: ObservationSpec,
        n_actions: int,
        n_members: int,
        *,
        torso: str,
        hidden: Sequence[int],
        own_layers: int,
        share_torso: bool,
        generator: torch.Generator,
        atoms: int | None = None,
        dueling: bool = False,
        noise_scale: float | None = None,
    ) -> None:
        super().__init__()
        self.spec, self.n_members, self.n_actions, self.atoms = spec, n_members, n_actions, atoms
        self._form: dict[str, Any] = {
            "torso": torso,
            "hidden": hidden,
            "own_layers": own_layers,
            "share_torso": share_torso,
            "atoms": atoms,
            "dueling": dueling,
            "noise_scale": noise_scale,
        }

        def mlp(n: int, sizes: Sequence[int], *, activate_last: bool) -> MLP:
            if noise_scale is None:
                return MemberMLP(n, sizes, generator, activate_last=activate_last)
            return NoisyMLP(n, sizes, generator, activate_last=activate_last, noise_scale=noise_scale)

        self._n_torsos = n_torsos = 1 if share_torso else n_members
        n_shared = max(len(hidden) - own_layers, 0)
        eye = _eye(torso, spec, n_torsos, generator)
        torso_sizes = (eye.n_features, *hidden[:n_shared])
        dense = mlp(n_torsos, torso_sizes, activate_last=True)
        self.torso = nn.Sequential(eye, dense)
        own_sizes, n_outputs = (torso_sizes[-1], *hidden[n_shared:]), atoms or 1
        self.heads: MLP | DuelingHeads
        self.heads = by_action = mlp(n_members, (*own_sizes, n_actions * n_outputs), activate_last=False)
        if dueling:
            value = mlp(n_members, (*own_sizes, n_outputs), activate_last=False)
            self.heads = DuelingHeads(value, by_action, n_actions)
        self.stages = eye, dense, self.heads
        self._noisy = [module for module in self.modules() if isinstance(module, NoisyMLP)]
        self._prior: tuple[QNetwork, float] | None = None  # in a tuple, so that it is no part to be learnt

    def forward(self, observations: Tensor, *, own_rows: bool = False) -> Tensor:
        """Return outputs (rows, K, A), or (rows, K, A, Z) with atoms, of observations (rows, …) as stored.

        With `own_rows`, the rows are K blocks of equal length, and the outputs (rows, 1, A[, Z]) of each
        block are those of its own member alone.
        """
        return self.outputs(self.spec.encode(observations), own_rows=own_rows)

    def outputs(self, encoded: Tensor, *, own_rows: bool = False) -> Tensor:
        """Return what `forward` does, of observations that `spec.encode` has made into floats."""
        eye, dense, heads = self.stages
        # Not stage(…): a module's hooks, of which there are none, would double an action's time.
        features = dense.forward(eye.forward(encoded, self._n_torsos if own_rows else 1))
        if own_rows:
            by_member = heads.forward(features.reshape(self.n_members, -1, features.shape[-1]))
            outputs = by_member.reshape(-1, 1, by_member.shape[-1])
        else:
            outputs = heads.forward(features).transpose(0, 1)
        return self._finished(outputs, encoded, own_rows)

    def both_outputs(self, encoded: Tensor, others: Tensor) -> Pair:
        """Return what `outputs` says of each, with gradients for the first only.

        Large layers read their weights once for both, which is faster than two passes.
        """
        eye, dense, heads = self.stages
        seen = eye.forward(encoded)
        with torch.no_grad():
            seen_of_others = eye.forward(others)
        by_member, by_member_of_others = heads.both(*dense.both(seen, seen_of_others))
        outputs = self._finished(by_member.transpose(0, 1), encoded, own_rows=False)
        return outputs, self._finished(by_member_of_others.transpose(0, 1), others, own_rows=False)

    def _finished(self, outputs: Tensor, encoded: Tensor, own_rows: bool) -> Tensor:
        """Return outputs (rows, members, A Z) with the prior added, and the atoms on an axis of their own."""
        if self._prior is not None:
            prior, scale = self._prior
            with torch.no_grad():
                said = prior.outputs(encoded, own_rows=own_rows)
            outputs = outputs + scale * said
        return (
            outputs if self.atoms is None else outputs.reshape(*outputs.shape[:2], self.n_actions, self.atoms)
        )

    def add_prior(self, prior: "QNetwork", scale: float) -> None:
        """Add `scale` times what `prior` says to all outputs, for ever (Osband et al., 2018)."""
        self._prior = (prior.requires_grad_(False), scale)

    @property
    def prior(self) -> "QNetwork | None":
        """The fixed network that is added to this one."""
        return None if self._prior is None else self._prior[0]

    @property
    def is_noisy(self) -> bool:
        """Whether the outputs depend on noise."""
        return bool(self._noisy)

    def resample(self, generator: torch.Generator) -> None:
        """Draw new noise; a network without noise draws nothing."""
        for mlp in self._noisy:
            mlp.resample(generator)

    def hold(self) -> None:
        """Compute the noisy weights once, for all passes until they change again.

        Whoever changes the parameters must call this again before the next pass.
        """
        for mlp in self._noisy:
            mlp.hold()

    def pack(self, rows: int) -> None:
        """Prepare these weights for many passes without gradients, of about this many rows.

        Whoever changes the parameters must call this again before the next pass.
        """
        self.hold()
        if self._n_torsos > 1:  # whose features are each member's own, for which packed weights have no use
            return
        for module in self.modules():
            if isinstance(module, MemberLinear):
                module.pack(rows)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Leave the noise out for a while."""
        for mlp in self._noisy:
            mlp.quiet = True
        try:
            yield
        finally:
            for mlp in self._noisy:
                mlp.quiet = False

    def member(self, k: int) -> "QNetwork":
        """Return member `k` as a network of one, whose parameters are views into this one's memory."""
        one = QNetwork(self.spec, self.n_actions, 1, **self._form, generator=torch.Generator())
        for view, tensor in zip(one.tensors(), self.tensors(), strict=True):
            n_owners = len(tensor) // len(view)
            view.data = tensor.detach().chunk(n_owners)[k if n_owners > 1 else 0]
        if self._prior is not None:
            one.add_prior(self._prior[0].member(k), self._prior[1])
        return one

    def copies(self, n: int) -> "QNetwork":
        """Return a network of `n` members that share nothing, each like this network of one."""
        form = {**self._form, "share_torso": False}
        many = QNetwork(self.spec, self.n_actions, n, **form, generator=torch.Generator())
        for tensor, own in zip(many.tensors(), self.tensors(), strict=True):
            tensor.data = own.detach().repeat(n, *[1] * (own.ndim - 1))
        return many

    def tensors(self) -> list[Tensor]:
        """Return the parameters and the noise; the first axis of each is, or can be cut into, members."""
        return [*self.parameters(), *self.buffers()]


def _eye(
    torso: str, spec: ObservationSpec, n_torsos: int, generator: torch.Generator
) -> Flatten | MinAtarConvolution | NatureConvolutions | SmallConvolutions:
    if torso == "mlp":
        return Flatten(spec.n_inputs)
    if torso == "minatar":
        return MinAtarConvolution(n_torsos, spec.image_shape, generator)
    if torso == "small":
        return SmallConvolutions(n_torsos, spec.image_shape, generator)
    return NatureConvolutions(n_torsos, spec.image_shape, generator)
