"""Structured observations as rows of bytes.

A `Dict`, `Tuple`, `MultiDiscrete` or `MultiBinary` observation, nested or not, is a fixed number of arrays.
Their bytes one after the other are one array, which lanes, replays and checkpoints treat like any other.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from numpy.typing import NDArray

from ebql.errors import InputError, InputTypeError

Bytes = NDArray[np.uint8]

NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
"""NumPy's names of the types that observations and actions may have."""


@dataclass(frozen=True)
class Leaf:
    """One array of a structured observation."""

    path: tuple[str | int, ...]
    """The keys and places that lead to it: `observation["camera"][0]` has the path ("camera", 0)."""
    shape: tuple[int, ...]
    dtype: str
    categories: tuple[int, ...] = ()
    """The number of values of each entry, if entries are categories; () for numbers."""
    first: tuple[int, ...] = ()
    """The lowest value of each entry, if entries are categories."""

    @property
    def is_possible(self) -> bool:
        """Whether a space can have such an array; for a description that was read from a file."""
        n_entries = math.prod(self.shape)
        are_categories = min(self.categories, default=0) > 0 and self.dtype == "int64"
        fits = not self.categories or (
            are_categories and len(self.categories) == len(self.first) == n_entries
        )
        return self.dtype in NUMBERS and min(self.shape, default=0) >= 0 and fits

    @property
    def n_bytes(self) -> int:
        """The bytes of one array."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def name(self) -> str:
        """How Python code writes it."""
        return "observation" + "".join(f"[{key!r}]" for key in self.path)

    def of(self, observation: Any) -> NDArray[Any]:
        """Return this array of an observation, or of many that were stacked array by array."""
        for key in self.path:
            try:
                observation = observation[key]
            except (KeyError, IndexError, TypeError):
                raise InputError(f"{self.name} is missing.") from None
        array = np.asarray(observation, self.dtype)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)].flat[0]
            raise InputError(f"{self.name} has the value {wrong}: observations must be finite.")
        return array


@dataclass(frozen=True)
class Structure:
    """The arrays of a structured observation, in order."""

    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, space: gymnasium.Space[Any]) -> "Structure":
        """Return the structure of this space; refuse a space with parts that no network takes."""
        return cls(tuple(_leaves(space, ())))

    @property
    def n_bytes(self) -> int:
        """The bytes of one observation."""
        return sum(leaf.n_bytes for leaf in self.leaves)

    def rows(self, observation: Any) -> tuple[Bytes, bool]:
        """Return observations as bytes (rows, n_bytes), and whether a single one was given."""
        first = self.leaves[0]
        single = first.of(observation).shape == first.shape
        return (self.pack(observation)[None] if single else self.pack_rows(observation)), single

    def pack(self, observation: Any) -> Bytes:
        """Return the bytes (n_bytes,) of one observation."""
        parts = []
        for leaf in self.leaves:
            array = leaf.of(observation)
            if array.shape != leaf.shape:
                raise InputError(f"{leaf.name} has shape {array.shape}, not {leaf.shape}.")
            parts.append(np.frombuffer(array.tobytes(), np.uint8))
        return np.concatenate(parts)

    def pack_rows(self, observations: Any) -> Bytes:
        """Return the bytes (rows, n_bytes) of observations that are stacked array by array."""
        parts = []
        for leaf in self.leaves:
            array = leaf.of(observations)
            if array.shape[1:] != leaf.shape or not array.ndim:
                raise InputError(f"{leaf.name} has shape {array.shape}, not (rows, *{leaf.shape}).")
            parts.append(np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), leaf.n_bytes))
        if len({len(part) for part in parts}) > 1:
            raise InputError("The arrays of the observations have different numbers of rows.")
        return np.concatenate(parts, 1)

    def columns(self, packed: Bytes) -> Iterator[tuple[Leaf, NDArray[Any]]]:
        """Yield each array (rows, …) of packed observations (rows, n_bytes)."""
        end = 0
        for leaf in self.leaves:
            begin, end = end, end + leaf.n_bytes
            column = np.ascontiguousarray(packed[:, begin:end]).view(leaf.dtype)
            yield leaf, column.reshape(len(packed), *leaf.shape)


def unpack_rows(space: gymnasium.Space[Any], packed: Bytes) -> Any:
    """Return packed observations (rows, n_bytes) of this space as they were, stacked array by array."""
    return _nested(space, (column for _, column in Structure.of(space).columns(packed)))


def _nested(space: gymnasium.Space[Any], columns: Iterator[NDArray[Any]]) -> Any:
    """Return the next columns in the form of the space; they come in the order of `_leaves`."""
    if isinstance(space, Dict):
        return {key: _nested(part, columns) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(_nested(part, columns) for part in space.spaces)
    return next(columns)


def is_structured(space: gymnasium.Space[Any]) -> bool:
    """Return whether observations of this space are packed; a Box or Discrete one is stored as it is."""
    return not isinstance(space, Box | Discrete)


def _leaves(space: gymnasium.Space[Any], path: tuple[str | int, ...]) -> Iterator[Leaf]:
    if isinstance(space, Dict | Tuple):
        parts = space.spaces.items() if isinstance(space, Dict) else enumerate(space.spaces)
        for key, part in parts:
            yield from _leaves(part, (*path, key))
    elif isinstance(space, Box | MultiBinary):
        yield Leaf(path, tuple(space.shape), np.dtype(space.dtype).name)
    elif isinstance(space, Discrete):
        yield Leaf(path, (), "int64", (int(space.n),), (int(space.start),))
    elif isinstance(space, MultiDiscrete):
        sizes, first = (tuple(array.ravel().tolist()) for array in (space.nvec, space.start))
        yield Leaf(path, tuple(space.shape), "int64", sizes, first)
    else:
        where = f" in {Leaf(path, (), '').name}" if path else ""
        raise InputTypeError(
            f"Observations must be Box, Discrete, MultiDiscrete or MultiBinary, or a Dict or Tuple of these, "
            f"not {type(space).__name__}{where}."
        )
