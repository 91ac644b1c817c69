"""Convolutions of binary images, computed from the pixels that are set.

A MinAtar image has a few hundred pixels, of which 7 to 50 are set. Each set pixel adds one row of the weights
to each of the up to nine features whose patch contains it. That is less work than unfolding the patches.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebql.compiled import compiled, inlined
from ebql.deep import fast
from ebql.deep.networks.observations import ObservationSpec

FILTERS, SIDE = 16, 3
"""Constants, so that the compiler unrolls the loops over them."""

Floats = NDArray[np.float32]
Bits = NDArray[np.bool_]


def applies(spec: ObservationSpec, observations: Tensor) -> bool:
    """Return whether stored observations are binary images on a CPU, with their channels last."""
    return (
        observations.dtype == torch.bool
        and observations.device.type == "cpu"
        and not spec.channels_first
        and fast.enabled()
    )


def convolved(images: Tensor, weight: Tensor, bias: Tensor, blocks: int) -> Tensor:
    """Return the rectified features (M, rows / blocks, n) of binary images (rows, height, width, channels).

    The weights are (M, side · side · channels, filters), the biases (M, 1, filters).
    """
    by_block = images.reshape(blocks, len(images) // blocks, images.shape[1], -1)
    features: Tensor = _Convolution.apply(by_block, weight.contiguous(), bias)  # type: ignore[no-untyped-call]
    return features


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        features = torch.from_numpy(features_of(images.numpy(), weight.numpy(), bias.numpy()))
        ctx.save_for_backward(images, features)
        return features

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> Any:
        images, features = ctx.saved_tensors
        arrays = (images.numpy(), features.numpy(), slopes.contiguous().numpy())
        return None, *map(torch.from_numpy, gradients_of(*arrays))


@compiled
def features_of(images: Bits, weight: Floats, bias: Floats) -> Floats:
    """Return features (M, rows, n) of images (blocks, rows, height, width · channels).

    There are M blocks, one for each member, or one block for all members.
    """
    n_members, (n_blocks, rows, height, width) = len(weight), images.shape
    channels = weight.shape[1] // SIDE**2
    down, across = height - SIDE + 1, width // channels - SIDE + 1
    features = np.empty((n_members, rows, down * across * FILTERS), np.float32)
    columns = np.empty(width, np.int64)
    for member in range(n_members):
        weights = weight[member].ravel()
        for row in range(rows):
            image, out = images[member if n_blocks > 1 else 0, row], features[member, row]
            for patch in range(down * across):
                for i in range(FILTERS):
                    out[patch * FILTERS + i] = bias[member, 0, i]
            for y in range(height):
                for column in columns[: set_columns(image[y], columns)]:
                    x, channel = column // channels, column % channels
                    for dy in range(max(0, y - down + 1), min(SIDE, y + 1)):
                        for dx in range(max(0, x - across + 1), min(SIDE, x + 1)):
                            # Unsigned, so that the compiler need not look for negative indices.
                            feature = np.uintp(((y - dy) * across + x - dx) * FILTERS)
                            first = np.uintp(((dy * SIDE + dx) * channels + channel) * FILTERS)
                            for i in range(np.uintp(FILTERS)):
                                out[feature + i] += weights[first + i]
            for i in range(len(out)):
                if out[i] < 0:  # false for a NaN, which must reach the loss
                    out[i] = 0
    return features


@compiled
def gradients_of(images: Bits, features: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Return the gradients of weights and biases, given those of the features (M, rows, n)."""
    n_members, (n_blocks, rows, height, width) = len(features), images.shape
    n_pixels = features.shape[2] // FILTERS // (height - SIDE + 1) + SIDE - 1
    channels = width // n_pixels
    down, across = height - SIDE + 1, n_pixels - SIDE + 1
    of_weight = np.zeros((n_members, SIDE**2 * channels, FILTERS), np.float32)
    of_bias = np.zeros((n_members, 1, FILTERS), np.float32)
    columns, active = np.empty(width, np.int64), np.empty(features.shape[2], np.float32)
    for member in range(n_members):
        weights, biases = of_weight[member].ravel(), of_bias[member, 0]
        for row in range(rows):
            image = images[member if n_blocks > 1 else 0, row]
            for i in range(len(active)):  # the slopes where the rectifier lets them pass
                active[i] = slopes[member, row, i] if features[member, row, i] > 0 else 0
            for patch in range(down * across):
                for i in range(FILTERS):
                    biases[i] += active[patch * FILTERS + i]
            for y in range(height):
                for column in columns[: set_columns(image[y], columns)]:
                    x, channel = column // channels, column % channels
                    for dy in range(max(0, y - down + 1), min(SIDE, y + 1)):
                        for dx in range(max(0, x - across + 1), min(SIDE, x + 1)):
                            feature = np.uintp(((y - dy) * across + x - dx) * FILTERS)
                            first = np.uintp(((dy * SIDE + dx) * channels + channel) * FILTERS)
                            for i in range(np.uintp(FILTERS)):
                                weights[first + i] += active[feature + i]
    return of_weight, of_bias


@inlined
def set_columns(pixels: Bits, columns: NDArray[np.int64]) -> int:
    """Write the places of the set pixels to `columns`, and return how many there are."""
    n = 0
    for column in range(len(pixels)):
        columns[n] = column
        n += pixels[column]
    return n
