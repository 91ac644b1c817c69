"""Encoders: the part of a network that turns observations into features.

`encode` turns stored observations into floats, and `unfold` turns images into the patches that a product
needs. Both happen once for all networks that see them: moving pixels takes as long as a small product. An
encoder maps the result (rows, …) to features (M, rows / blocks, n_features). M is 1 for an encoder that all
members share. For K encoders, rows may come as K `blocks`, one for each member.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ebql.deep.fast import sparse
from ebql.deep.networks.layers import MemberLinear, uniform
from ebql.deep.networks.observations import ObservationSpec

SMALLEST = {"nature": 36, "small": 25, "minatar": 3}
"""The side of the smallest image that a torso's convolutions accept, in pixels."""


def encode(spec: ObservationSpec, observations: Tensor) -> Tensor:
    """Return stored observations (rows, …) as floats, with the channels of an image last."""
    floats = to_floats(spec, observations)
    if spec.gets_channel:
        return floats.unsqueeze(-1)
    return floats.permute(0, 2, 3, 1) if spec.channels_first else floats


def to_floats(spec: ObservationSpec, observations: Tensor) -> Tensor:
    """Return stored observations (rows, …) as floats: one-hot, or bytes scaled to [0, 1].

    A structured observation becomes one row of numbers: its images, then the rest, each in order.
    """
    if spec.leaves:
        return _floats_of_leaves(spec, observations)
    if spec.n_categories is not None:
        return functional.one_hot(observations - spec.first_category, spec.n_categories).float()
    floats = observations.float()
    if spec.dtype == "uint8":
        floats = floats.mul_(1 / 255)  # in place: the floats are a copy
    return floats


def _floats_of_leaves(spec: ObservationSpec, observations: Tensor) -> Tensor:
    images, others, end = [], [], 0
    for leaf, image in zip(spec.leaves, spec.leaf_specs, strict=True):
        begin, end = end, end + leaf.n_bytes
        # A copy, because only aligned bytes can be read as larger numbers.
        column = (
            observations[:, begin:end]
            .clone(memory_format=torch.contiguous_format)
            .view(getattr(torch, leaf.dtype))
        )
        if image is not None:
            images.append(encode(image, column.reshape(-1, *leaf.shape)).flatten(1))
        elif leaf.categories:
            places = column - torch.tensor(leaf.first, device=column.device)
            others += [
                functional.one_hot(places[:, i], size).float() for i, size in enumerate(leaf.categories)
            ]
        else:
            others.append(to_floats(ObservationSpec(leaf.shape, leaf.dtype), column))
    return torch.cat(images + others, 1)


class Flatten(nn.Module):
    """Passes vectors through, flattened."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    def unfold(self, observations: Tensor) -> Tensor:
        """Return the observations themselves."""
        return observations

    def forward(self, observations: Tensor, blocks: int = 1) -> Tensor:
        """Map observations (rows, …) to features (blocks, rows / blocks, n_features)."""
        return observations.reshape(blocks, len(observations) // blocks, self.n_features)


class MinAtarConvolution(nn.Module):
    """One 3×3 convolution with 16 filters, as in Young and Tian's MinAtar DQN.

    It is one product over the image's patches. For images this small, that takes half the time of a
    convolution call, and K encoders are the same batched product as every other layer. Binary images need no
    patches: `fast.sparse` convolves them as they are stored.
    """

    FILTERS, SIDE = sparse.FILTERS, sparse.SIDE

    def __init__(self, n_members: int, shape: tuple[int, int, int], generator: torch.Generator) -> None:
        super().__init__()
        height, width, channels = shape
        self._patches = (height - self.SIDE + 1, width - self.SIDE + 1)
        self.convolution = MemberLinear(n_members, self.SIDE**2 * channels, self.FILTERS, generator)
        self.n_features = math.prod(self._patches) * self.FILTERS

    def unfold(self, images: Tensor) -> Tensor:
        """Return the patches (rows, n, side · side · channels) of images (rows, height, width, channels)."""
        rows, _, width, channels = images.shape
        # A row of a patch is contiguous in memory, so all patches are one strided view.
        by_row, by_column = width * channels, channels
        patches = images.contiguous().as_strided(
            (rows, *self._patches, self.SIDE, self.SIDE * channels),
            (images[0].numel(), by_row, by_column, by_row, 1),
        )
        return patches.reshape(rows, -1, self.SIDE**2 * channels)

    def forward(self, patches: Tensor, blocks: int = 1) -> Tensor:
        """Map patches (rows, n, …), or stored binary images, to features (M, rows / blocks, n_features)."""
        if patches.dtype == torch.bool:
            layer = self.convolution.weights
            return sparse.convolved(patches, layer.weight, layer.bias, blocks)
        filtered = self.convolution(patches.reshape(blocks, -1, patches.shape[-1]))
        return torch.relu_(filtered).reshape(-1, len(patches) // blocks, self.n_features)


class NatureConvolutions(nn.Module):
    """The three convolutions of Mnih et al. (2015); K encoders are groups of channels."""

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
            # Channels last, like the images; otherwise each call would reorder the weights.
            self.weights.append(nn.Parameter(weight.contiguous(memory_format=torch.channels_last)))
            self.biases.append(nn.Parameter(uniform((n_out,), fan_in, generator)))
            height, width = (height - side) // stride + 1, (width - side) // stride + 1
            n_in = filters  # a group sees its own member's filters
        self.n_features = n_in * height * width

    def unfold(self, images: Tensor) -> Tensor:
        """Return the images themselves: PyTorch convolves them."""
        return images

    def forward(self, images: Tensor, blocks: int = 1) -> Tensor:
        """Map images (rows, height, width, channels) to features (M, rows / blocks, n_features)."""
        by_block = images.reshape(blocks, -1, *images.shape[1:])
        features = by_block.permute(1, 0, 4, 2, 3).flatten(1, 2)  # a block is a group of channels
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            stride, groups = self.LAYERS[i][2], self._n_members if i else blocks
            features = torch.conv2d(features, weight, bias, stride, groups=groups).relu_()
        # Channels stay last, as they are in memory: reordering costs as much as a layer's ReLU.
        by_pixel = features.permute(0, 2, 3, 1)
        by_member = by_pixel.reshape(*by_pixel.shape[:3], self._n_members, -1).permute(3, 0, 1, 2, 4)
        return by_member.reshape(self._n_members, len(features), self.n_features)


class SmallConvolutions(nn.Module):
    """The two convolutions of van Hasselt et al.'s data-efficient Rainbow (2019): a sixth of Nature's cost.

    Their patches do not overlap, so each convolution is one product over reordered pixels.
    """

    FILTERS, SIDE = (32, 64), 5

    def __init__(self, n_members: int, shape: tuple[int, int, int], generator: torch.Generator) -> None:
        super().__init__()
        height, width, n_in = shape
        self._shape = height // self.SIDE, width // self.SIDE  # of what the first convolution returns
        self._products: list[MemberLinear] = []
        for filters in self.FILTERS:
            self._products.append(MemberLinear(n_members, self.SIDE**2 * n_in, filters, generator))
            height, width, n_in = height // self.SIDE, width // self.SIDE, filters
        self.layers = nn.ModuleList(self._products)
        self.n_features = height * width * n_in

    def unfold(self, images: Tensor) -> Tensor:
        """Return the patches (rows, n, side · side · channels) of images (rows, height, width, channels)."""
        return self._patches(images.unsqueeze(0)).squeeze(0)

    def forward(self, patches: Tensor, blocks: int = 1) -> Tensor:
        """Map patches (rows, n, …) to features (M, rows / blocks, n_features)."""
        rows = len(patches) // blocks
        first, second = self._products
        filtered = first.forward(patches.reshape(blocks, -1, patches.shape[-1])).relu_()
        images = filtered.view(-1, rows, *self._shape, filtered.shape[-1])
        unfolded = self._patches(images).flatten(1, 2)
        return second.forward(unfolded).relu_().reshape(-1, rows, self.n_features)

    def _patches(self, images: Tensor) -> Tensor:
        """Return the patches (M, rows, n, …) of images (M, rows, height, width, channels)."""
        n_members, rows, height, width, channels = images.shape
        down, across = height // self.SIDE, width // self.SIDE
        cropped = images[:, :, : down * self.SIDE, : across * self.SIDE]
        grid = cropped.reshape(n_members, rows, down, self.SIDE, across, self.SIDE * channels)
        return grid.transpose(3, 4).reshape(n_members, rows, down * across, self.SIDE**2 * channels)


class Combined(nn.Module):
    """The images of a structured observation through convolutions, the rest as it is, all side by side."""

    def __init__(
        self, images: Sequence["Convolution"], shapes: Sequence[tuple[int, ...]], n_rest: int
    ) -> None:
        super().__init__()
        self._convolutions = tuple(images)  # what `images` registers, with their types
        self.images, self.shapes, self.n_rest = nn.ModuleList(images), shapes, n_rest
        self.n_features = sum(image.n_features for image in images) + n_rest

    def unfold(self, observations: Tensor) -> Tensor:
        """Return the observations themselves: `forward` unfolds each image."""
        return observations

    def forward(self, observations: Tensor, blocks: int = 1) -> Tensor:
        """Map encoded observations (rows, n) to features (M, rows / blocks, n_features)."""
        sizes = [math.prod(shape) for shape in self.shapes]
        *images, rest = torch.split(observations, [*sizes, self.n_rest], 1)
        features = [
            encoder.forward(encoder.unfold(image.reshape(-1, *shape)), blocks)
            for encoder, image, shape in zip(self._convolutions, images, self.shapes, strict=True)
        ]
        rest = rest.reshape(blocks, len(rest) // blocks, self.n_rest)
        return torch.cat([*features, rest.expand(len(features[0]), -1, -1)], -1)


def fitting_torso(shape: tuple[int, int, int]) -> str:
    """Return the torso for images of this shape (height, width, channels): mlp if they are too small."""
    side = min(shape[:2])
    return "nature" if side >= SMALLEST["nature"] else "minatar" if side >= SMALLEST["minatar"] else "mlp"


def make_encoder(torso: str, spec: ObservationSpec, n_torsos: int, generator: torch.Generator) -> "Encoder":
    """Return `n_torsos` encoders of this kind: mlp, minatar, small or nature.

    For structured observations, auto picks one for each image.
    """
    if torso == "mlp":
        return Flatten(spec.n_inputs)
    if spec.leaves:
        shapes = [image.image_shape for image in spec.image_leaves]
        kinds = [fitting_torso(shape) if torso == "auto" else torso for shape in shapes]
        images = [
            _convolution(kind, shape, n_torsos, generator) for kind, shape in zip(kinds, shapes, strict=True)
        ]
        return Combined(images, shapes, spec.n_inputs - sum(math.prod(shape) for shape in shapes))
    return _convolution(torso, spec.image_shape, n_torsos, generator)


def _convolution(
    torso: str, shape: tuple[int, int, int], n_torsos: int, generator: torch.Generator
) -> "Convolution":
    if torso == "minatar":
        return MinAtarConvolution(n_torsos, shape, generator)
    if torso == "small":
        return SmallConvolutions(n_torsos, shape, generator)
    return NatureConvolutions(n_torsos, shape, generator)


Convolution = MinAtarConvolution | NatureConvolutions | SmallConvolutions
Encoder = Flatten | Combined | Convolution
