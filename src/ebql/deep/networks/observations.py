"""Observations: stored as the environment returns them, encoded as a network's inputs on the device."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor
from torch.nn import functional

from ebql.environments.lanes.checked import first_not_finite
from ebql.environments.lanes.interface import Observations
from ebql.errors import InputError

# Arrays with three axes count as images if their first or last axis has at most this many channels.
_MOST_CHANNELS = 16


@dataclass(frozen=True)
class ObservationSpec:
    """The shape and type of one observation."""

    shape: tuple[int, ...]
    dtype: str
    n_categories: int | None = None
    """The number of values of a Discrete observation, which is encoded one-hot; None for a Box."""
    first_category: int = 0
    """The lowest value of a Discrete observation."""

    @classmethod
    def of(cls, space: Box | Discrete) -> "ObservationSpec":
        """Return the spec of this Gymnasium space."""
        if isinstance(space, Discrete):
            return cls((), "int64", int(space.n), int(space.start))
        return cls(tuple(space.shape), np.dtype(space.dtype).name)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "ObservationSpec":
        """Rebuild a spec from the output of `dataclasses.asdict` after a round trip through JSON."""
        try:
            return cls(**{**content, "shape": tuple(content["shape"])})
        except (KeyError, TypeError) as error:
            raise InputError(f"This does not describe an observation: {content!r}.") from error

    @property
    def n_inputs(self) -> int:
        """The number of network inputs for a flattened observation."""
        return self.n_categories or math.prod(self.shape)

    @cached_property
    def is_image(self) -> bool:
        """Whether the shape looks like (height, width, channels) or (channels, height, width)."""
        return len(self.shape) == 3 and min(self.shape[0], self.shape[2]) <= _MOST_CHANNELS

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The image's (height, width, channels), wherever the observation has its channels."""
        if not self.is_image:
            raise InputError(
                f"A convolution needs images, but this environment's observations have shape {self.shape}."
            )
        first, second, third = self.shape
        return (second, third, first) if self._channels_first else (first, second, third)

    @cached_property
    def _channels_first(self) -> bool:
        return self.is_image and self.shape[0] < self.shape[2]

    def rows(self, observation: Observations) -> tuple[Observations, bool]:
        """Return observations (rows, …), and whether a single one was given; refuse other shapes and NaN."""
        # A copy, because torch accepts neither negative strides nor read-only memory.
        array = np.array(observation, dtype=self.dtype, order="C")
        single = array.shape == self.shape
        if single:
            array = array[None]
        if array.shape[1:] != self.shape:
            raise InputError(f"The agent expects observations of shape {self.shape}, not {array.shape}.")
        if (found := first_not_finite(array)) is not None:
            row, wrong = found
            which = "The observation" if single else f"The observation in row {row}"
            raise InputError(f"{which} has the value {wrong}: observations must be finite.")
        return array, single

    def encode(self, observations: Tensor) -> Tensor:
        """Encode stored observations (rows, …) as floats, with the channels of an image last."""
        floats = self.floats(observations)
        return floats.permute(0, 2, 3, 1) if self._channels_first else floats

    def floats(self, observations: Tensor) -> Tensor:
        """Return stored observations (rows, …) as floats: one-hot, or bytes scaled to [0, 1]."""
        if self.n_categories is not None:
            return functional.one_hot(observations - self.first_category, self.n_categories).float()
        floats = observations.float()
        if self.dtype == "uint8":
            floats = floats.mul_(1 / 255)  # in place: the floats are a copy
        return floats

    def space(self) -> Box | Discrete:
        """Return a space of this shape and type; files do not keep the bounds of the environment's own."""
        if self.n_categories is not None:
            return Discrete(self.n_categories, start=self.first_category)
        dtype = np.dtype(self.dtype)
        low, high = -math.inf, math.inf
        if dtype.kind == "b":
            low, high = 0, 1
        elif dtype.kind != "f":
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return Box(low, high, self.shape, dtype.type)

    def examples(self, rows: int) -> Tensor:
        """Return observations (rows, …) that are all alike, as the replay stores them."""
        return torch.from_numpy(np.full((rows, *self.shape), self.first_category, self.dtype))
