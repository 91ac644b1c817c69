"""Observations as the environment returns them and the replay stores them: their shapes and types."""

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor

from ebql.environments.lanes.checked import first_not_finite
from ebql.environments.lanes.interface import Observations
from ebql.environments.lanes.structures import NUMBERS, Leaf, Structure
from ebql.errors import InputError
from ebql.typed import typed

# Arrays with three axes count as images if their first or last axis has at most this many channels.
_MOST_CHANNELS = 16
# Arrays of bytes with two axes count as images if both are at least as long as a small convolution's side.
_SMALLEST_PLANE = 3


@dataclass(frozen=True)
class ObservationSpec:
    """The shape and type of one observation."""

    shape: tuple[int, ...]
    dtype: str
    n_categories: int | None = None
    """The number of values of a Discrete observation, which is encoded one-hot; None for a Box."""
    first_category: int = 0
    """The lowest value of a Discrete observation."""
    leaves: tuple[Leaf, ...] = ()
    """The arrays of a structured observation, which is stored as their bytes; () for any other."""
    gets_channel: bool = False
    """Whether the observation is an image (height, width), which gets a channel."""

    @classmethod
    def of(cls, space: gymnasium.Space[Any]) -> "ObservationSpec":
        """Return the spec of this Gymnasium space."""
        if isinstance(space, Discrete):
            return cls((), "int64", int(space.n), int(space.start))
        if isinstance(space, Box):
            return cls._of_array(tuple(space.shape), np.dtype(space.dtype).name)
        structure = Structure.of(space)
        return cls((structure.n_bytes,), "uint8", leaves=structure.leaves)

    @classmethod
    def _of_array(cls, shape: tuple[int, ...], dtype: str) -> "ObservationSpec":
        is_plane = len(shape) == 2 and dtype == "uint8" and min(shape) >= _SMALLEST_PLANE
        return cls(shape, dtype, gets_channel=is_plane)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "ObservationSpec":
        """Rebuild a spec from the output of `to_json` after a round trip through JSON."""
        try:
            spec: ObservationSpec = typed(cls, content)
            if not spec._is_possible():
                raise TypeError("No space has such observations.")
        except TypeError as error:
            raise InputError(f"This does not describe an observation: {content!r:.200}.") from error
        return spec

    def _is_possible(self) -> bool:
        """Whether a space can have such observations; for a description that was read from a file."""
        if self.dtype not in NUMBERS or min(self.shape, default=1) < 0:
            return False
        if self.leaves:
            packed = ObservationSpec((Structure(self.leaves).n_bytes,), "uint8", leaves=self.leaves)
            return all(leaf.is_possible for leaf in self.leaves) and self == packed and self.n_inputs > 0
        if self.n_categories is not None:
            return self.n_categories > 0 and (self.shape, self.dtype) == ((), "int64")
        is_plane = self._of_array(self.shape, self.dtype).gets_channel
        return math.prod(self.shape) > 0 and (is_plane or not self.gets_channel)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON-able values, without the parts that only some observations have."""
        content = asdict(self)
        return {name: x for name, x in content.items() if x or name not in ("leaves", "gets_channel")}

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype}"

    @property
    def n_inputs(self) -> int:
        """The number of network inputs for a flattened observation."""
        if self.leaves:
            return sum(sum(leaf.categories) or math.prod(leaf.shape) for leaf in self.leaves)
        return self.n_categories or math.prod(self.shape)

    @cached_property
    def image_leaves(self) -> tuple["ObservationSpec", ...]:
        """The images of a structured observation, which come first when it is encoded."""
        return tuple(spec for spec in self.leaf_specs if spec is not None)

    @cached_property
    def leaf_specs(self) -> tuple["ObservationSpec | None", ...]:
        """The spec of each leaf that is an image; None for the others."""
        specs = [None if leaf.categories else self._of_array(leaf.shape, leaf.dtype) for leaf in self.leaves]
        return tuple(
            spec
            if spec is not None and spec.is_image and min(spec.image_shape[:2]) >= _SMALLEST_PLANE
            else None
            for spec in specs
        )

    @cached_property
    def is_image(self) -> bool:
        """Whether the shape looks like (height, width, channels) or (channels, height, width)."""
        if self.gets_channel:
            return True
        return len(self.shape) == 3 and min(self.shape[0], self.shape[2]) <= _MOST_CHANNELS

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The image's (height, width, channels), wherever the observation has its channels."""
        if not self.is_image:
            raise InputError(
                f"A convolution needs images, but this environment's observations have shape {self.shape}."
            )
        if self.gets_channel:
            return self.shape[0], self.shape[1], 1
        first, second, third = self.shape
        return (second, third, first) if self.channels_first else (first, second, third)

    @cached_property
    def channels_first(self) -> bool:
        """Whether the observation is an image (channels, height, width)."""
        return self.is_image and not self.gets_channel and self.shape[0] < self.shape[2]

    def rows(self, observation: Any) -> tuple[Observations, bool]:
        """Return observations (rows, …) as they are stored, and whether a single one was given.

        Other shapes and NaN are refused. A structured observation is given as the environment writes it; many
        are stacked array by array.
        """
        if self.leaves:
            return Structure(self.leaves).rows(observation)
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

    def space(self) -> Box | Discrete:
        """Return a space of this shape and type; files do not keep the bounds of the environment's own.

        Modules of the user's own take a structured observation as one row of numbers.
        """
        if self.leaves:
            return Box(-math.inf, math.inf, (self.n_inputs,), np.float32)
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
        if self.leaves:
            arrays = [
                np.array(leaf.first, leaf.dtype) if leaf.categories else np.zeros(leaf.shape, leaf.dtype)
                for leaf in self.leaves
            ]
            packed = np.frombuffer(b"".join(array.tobytes() for array in arrays), np.uint8)
            return torch.from_numpy(packed[None].repeat(rows, 0))
        return torch.from_numpy(np.full((rows, *self.shape), self.first_category, self.dtype))
