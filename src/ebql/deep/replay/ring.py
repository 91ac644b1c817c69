"""The transitions an agent has seen; which of them are learnt from is the sampler's choice."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.deep.networks.observations import ObservationSpec
from ebql.environments import LaneStep

Array = NDArray[Any]


class Transitions(NamedTuple):
    """Some transitions; every array has a leading axis of rows. Observations keep the environment's type."""

    observations: Array
    actions: Array
    rewards: Array
    """(rows,) for n steps: r₁ + γ r₂ + … + γⁿ⁻¹ rₙ."""
    discounts: Array
    """(rows,) the factor of the next observation's value: γⁿ, or 0 where the episode terminated."""
    next_observations: Array
    masks: Array
    """(rows, K): the members that learn from the transition; (rows, 0) where all do."""


class Replay:
    """A ring of the last `capacity` transitions, allocated once.

    Gathering writes into arrays that the next call overwrites: it costs no allocation, and the caller is
    done with them (it has moved them to the device) before it asks again.
    """

    def __init__(self, capacity: int, spec: ObservationSpec, n_masks: int = 0) -> None:
        self.capacity = capacity
        self.size = 0
        self.next_row = 0
        """Where the next transition will be written."""
        self._spec, self.n_masks = spec, n_masks
        self._rows = self._allocate(capacity)
        self._draw = self._allocate(0)

    def _allocate(self, rows: int) -> Transitions:
        return Transitions(
            observations=np.zeros((rows, *self._spec.shape), self._spec.dtype),
            actions=np.zeros(rows, np.int64),
            rewards=np.zeros(rows, np.float32),
            discounts=np.zeros(rows, np.float32),
            next_observations=np.zeros((rows, *self._spec.shape), self._spec.dtype),
            masks=np.ones((rows, self.n_masks), bool),
        )

    def begin(self, observations: Array) -> Array:
        """Return what is kept of the lanes' observations: here, the observations themselves."""
        return observations

    def keep(self, taken: LaneStep) -> LaneStep:
        """Return a step with what is kept of its observations: here, the observations themselves."""
        return taken

    def add(self, transitions: Transitions) -> None:
        """Append these transitions, over the oldest ones once the ring is full."""
        n = len(transitions.actions)
        if n == 1:  # one environment: plain indexing takes a third of the time of the general case
            row = self.next_row
            for ring, new in zip(self._rows, transitions, strict=True):
                ring[row] = new[0]
        else:
            rows = (self.next_row + np.arange(n)) % self.capacity
            for ring, new in zip(self._rows, transitions, strict=True):
                ring[rows] = new
        self.next_row = (self.next_row + n) % self.capacity
        self.size = min(self.size + n, self.capacity)

    def gather(self, rows: NDArray[np.int64]) -> Transitions:
        """Return the transitions in these rows (n,), in arrays reused by the next call."""
        if len(self._draw.actions) != len(rows):
            self._draw = self._allocate(len(rows))
        for ring, out in zip(self._rows, self._draw, strict=True):
            # mode="clip" writes straight into `out`; the default mode goes through a copy.
            ring.take(rows, axis=0, out=out, mode="clip")
        return self._draw

    def state(self) -> dict[str, Array]:
        """Return the filled part of the ring and the place of the next write, without copying."""
        filled = {name: rows[: self.size] for name, rows in self._rows._asdict().items()}
        return {**filled, "next": np.array(self.next_row)}

    def restore(self, state: dict[str, Array]) -> None:
        """Become the replay that `state` was taken from."""
        self.size, self.next_row = len(state["actions"]), int(state["next"])
        for name, ring in self._rows._asdict().items():
            ring[: self.size] = state[name]
