"""What an agent sees: stored as the environment gives it, made into numbers for a network on the device."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ebql.errors import InputError

# A network can't tell an image from a matrix; what looks like one has at most this many channels.
_MOST_CHANNELS = 16


@dataclass(frozen=True)
class ObservationSpec:
    """The form of one observation."""

    shape: tuple[int, ...]
    dtype: str
    n_categories: int | None = None
    """The number of values of a Discrete observation, which a network sees one-hot; None for a Box."""
    first_category: int = 0

    @classmethod
    def of(cls, space: Box | Discrete) -> "ObservationSpec":
        """Describe the observations of this Gymnasium space."""
        if isinstance(space, Discrete):
            return cls((), "int64", int(space.n), int(space.start))
        return cls(tuple(space.shape), np.dtype(space.dtype).name)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "ObservationSpec":
        """Rebuild a spec from `dataclasses.asdict` gone through JSON."""
        try:
            return cls(**{**content, "shape": tuple(content["shape"])})
        except (KeyError, TypeError) as error:
            raise InputError(f"This describes no observation: {content!r}.") from error

    @property
    def n_inputs(self) -> int:
        """The number of a network's inputs when the observation is flattened."""
        return self.n_categories or math.prod(self.shape)

    @cached_property
    def is_image(self) -> bool:
        """Whether the observation looks like (height, width, channels) or (channels, height, width)."""
        return len(self.shape) == 3 and min(self.shape[0], self.shape[2]) <= _MOST_CHANNELS

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The image's (height, width, channels), whichever axis held the channels."""
        if not self.is_image:
            raise InputError(f"A convolution needs images; this environment's observations are {self.shape}.")
        first, second, third = self.shape
        return (second, third, first) if self._channels_first else (first, second, third)

    @cached_property
    def _channels_first(self) -> bool:
        return self.is_image and self.shape[0] < self.shape[2]

    def encode(self, observations: Tensor) -> Tensor:
        """Turn stored observations (rows, …) into floats: one-hot, channels last, bytes scaled to [0, 1]."""
        if self.n_categories is not None:
            return functional.one_hot(observations - self.first_category, self.n_categories).float()
        floats = observations.float()
        if self.dtype == "uint8":
            floats = floats.mul_(1 / 255)  # the floats are a copy of the bytes
        return floats.permute(0, 2, 3, 1) if self._channels_first else floats


def first_not_finite(observations: NDArray[Any]) -> tuple[int, float] | None:
    """Return the row and the value of the first NaN or infinity in observations (rows, …); None without one.

    A network turns it into a loss that is not a number, long after the environment could be blamed.
    """
    if observations.dtype.kind != "f" or np.isfinite(observations).all():
        return None
    place = tuple(np.argwhere(~np.isfinite(observations))[0])
    return int(place[0]), float(observations[place])
