"""Observations scaled by their running mean and spread."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebql.deep.replay.ring import Array

_SMALLEST_VARIANCE = 1e-8
FURTHEST = 10.0  # spreads from the mean; observations further away are clipped


class Normaliser:
    """The mean and variance of all observations so far, element by element (Welford's algorithm).

    Before the first observation it changes nothing. The replay keeps observations as they are, so the latest
    mean and spread apply to old ones, too.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._count = np.zeros(1)
        self._mean, self._squares = np.zeros(shape), np.zeros(shape)
        self._shift, self._scale = np.zeros(shape, np.float32), np.ones(shape, np.float32)

    def update(self, observations: Array) -> None:
        """Count these observations (rows, …) in."""
        n = len(observations)
        mean = observations.mean(0, dtype=np.float64)
        squares = np.square(observations - mean).sum(0)
        difference = mean - self._mean
        total = self._count + n
        self._mean += difference * n / total
        self._squares += squares + np.square(difference) * self._count * n / total
        self._count[:] = total
        self.refresh()

    def __call__(self, floats: Tensor) -> Tensor:
        """Return observations (rows, …) in spreads from the mean, at most ±10."""
        shift, scale = (torch.from_numpy(array).to(floats.device) for array in (self._shift, self._scale))
        return ((floats - shift) * scale).clamp_(-FURTHEST, FURTHEST)

    @property
    def shift_and_scale(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What is subtracted from observations, and then multiplied by; both of an observation's shape."""
        return self._shift, self._scale

    def flat(self, floats: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the same for flattened observations (rows, inputs) in NumPy."""
        scaled = (floats - self._shift.reshape(-1)) * self._scale.reshape(-1)
        return np.clip(scaled, -FURTHEST, FURTHEST, out=scaled)

    def tensors(self) -> dict[str, Tensor]:
        """Return the state by name, without copying."""
        state = {"count": self._count, "mean": self._mean, "squares": self._squares}
        return {name: torch.from_numpy(array) for name, array in state.items()}

    def refresh(self) -> None:
        """Follow a change of the state's tensors."""
        if self._count[0]:
            self._shift[...] = self._mean
            self._scale[...] = 1 / np.sqrt(self._squares / self._count + _SMALLEST_VARIANCE)
