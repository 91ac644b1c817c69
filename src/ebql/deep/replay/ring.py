"""Transitions, the one batch type from the environment to the loss; their ring, and uniform samples of it."""

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ebql.deep.networks.observations import ObservationSpec
from ebql.environments import LaneStep

Array = NDArray[Any]
Ints = NDArray[np.int64]
A = TypeVar("A")

ALL_ALIKE: Any = np.empty(0, np.float32)
"""The weights of rows that all count alike."""
EVERY_ACTION: Any = np.empty(0, np.bool_)
"""The legal actions of rows in which all are legal."""


class Transitions(NamedTuple, Generic[A]):
    """Transitions, one a row: arrays in the replay, tensors in the learner.

    Observations keep the environment's type.
    """

    observations: A
    actions: A
    rewards: A
    """(rows,) for n steps: r₁ + γ r₂ + … + γⁿ⁻¹ rₙ."""
    discounts: A
    """(rows,) the factor of the next observation's value: γⁿ, or 0 where the episode terminated."""
    next_observations: A
    masks: A
    """(rows, K): the members that learn from the transition; (rows, 0) where all do."""
    weights: A = ALL_ALIKE
    """(rows,) the weight of each row in the loss; (0,) where all count alike. The replay does not keep it."""
    legal: A = EVERY_ACTION
    """(rows, A): the legal actions of the next state; (0,) where all are."""


class Replay:
    """A ring of the last `capacity` transitions, allocated once.

    `gather` returns arrays that the next call overwrites, which saves an allocation: the caller has moved
    them to the device by then.
    """

    def __init__(
        self, capacity: int, spec: ObservationSpec, n_masks: int = 0, n_actions: int | None = None
    ) -> None:
        """Make room for `capacity` transitions; `n_actions` is given where the environment has masks."""
        self.capacity = capacity
        self.size = 0
        self.next_row = 0
        """Where the next transition will be written."""
        self._spec, self.n_masks = spec, n_masks
        self._rows = self._allocate(capacity)
        self._draw = self._allocate(0)
        self._legal = None if n_actions is None else np.ones((capacity, n_actions), bool)

    def _allocate(self, rows: int) -> Transitions[Array]:
        return Transitions(
            observations=np.zeros((rows, *self._spec.shape), self._spec.dtype),
            actions=np.zeros(rows, np.int64),
            rewards=np.zeros(rows, np.float32),
            discounts=np.zeros(rows, np.float32),
            next_observations=np.zeros((rows, *self._spec.shape), self._spec.dtype),
            masks=np.ones((rows, self.n_masks), bool),
        )

    def begin(self, observations: Array) -> Array:
        """Return what to store of the lanes' observations: here, the observations themselves."""
        return observations

    def keep(self, taken: LaneStep) -> LaneStep:
        """Return a step with what to store of its observations: here, the observations themselves."""
        return taken

    def add(self, transitions: Transitions[Array]) -> None:
        """Append these transitions; once the ring is full, they replace the oldest ones."""
        n = len(transitions.actions)
        if n == 1:  # one environment: plain indexing takes a third of the time of the general case
            row = self.next_row % self.capacity
            for ring, new in zip(_stored(self._rows), _stored(transitions), strict=True):
                ring[row] = new[0]
        else:
            rows = (self.next_row + np.arange(n)) % self.capacity
            for ring, new in zip(_stored(self._rows), _stored(transitions), strict=True):
                ring[rows] = new
        if self._legal is not None:
            self._legal[(self.next_row + np.arange(n)) % self.capacity] = transitions.legal
        self.next_row = (self.next_row + n) % self.capacity
        self.size = min(self.size + n, self.capacity)

    def gather(self, rows: NDArray[np.int64]) -> Transitions[Array]:
        """Return the transitions in these rows (n,), in arrays reused by the next call."""
        if len(self._draw.actions) != len(rows):
            self._draw = self._allocate(len(rows))
        for ring, out in zip(_stored(self._rows), _stored(self._draw), strict=True):
            # mode="clip" writes straight into `out`; the default mode goes through a copy.
            ring.take(rows, axis=0, out=out, mode="clip")
        return self._draw if self._legal is None else self._draw._replace(legal=self._legal[rows])

    def state(self) -> dict[str, Array]:
        """Return the filled part of the ring and the place of the next write, without copying."""
        filled = {name: rows[: self.size] for name, rows in zip(_STORED, _stored(self._rows), strict=True)}
        if self._legal is not None:
            filled[_LEGAL] = self._legal[: self.size]
        return {**filled, "next": np.array(self.next_row)}

    def restore(self, state: dict[str, Array]) -> None:
        """Restore a saved `state`."""
        self.size, self.next_row = len(state["actions"]), int(state["next"])
        # The next row is the capacity where data came from a larger ring that was not full.
        if self.size > self.capacity or not 0 <= self.next_row <= self.capacity:
            raise ValueError(f"{self.size} rows, the next at {self.next_row}, are not for {self.capacity}")
        for name, ring in zip(_STORED, _stored(self._rows), strict=True):
            ring[: self.size] = state[name]
        if self._legal is not None:
            self._legal[: self.size] = state.get(_LEGAL, True)  # missing in checkpoints of version 0.1


_LEGAL = "legal"
_STORED = Transitions._fields[:-2]


def _stored(transitions: Transitions[Array]) -> tuple[Array, ...]:
    """Return the columns that every ring keeps: all but the weights and the legal actions."""
    return transitions[:-2]


class Draw(NamedTuple):
    """The rows to learn from."""

    rows: Ints
    """(n,) places in the ring."""
    weights: NDArray[np.float32] | None
    """(n,) the weight of each in the loss, at most 1; None where all count alike."""


class Uniform:
    """Every row is equally likely."""

    def added(self, first: int, n: int) -> None:
        """Do nothing: new rows are like all others."""

    def draw(self, n: int, size: int, step: int, rng: np.random.Generator) -> Draw:  # noqa: ARG002
        """Return `n` of the `size` filled rows, sampled with replacement."""
        return Draw(rng.integers(0, size, n), None)

    def update(self, rows: Ints, errors: NDArray[Any]) -> None:
        """Do nothing: errors do not matter."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return nothing: uniform sampling has no state."""
        return {}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Do nothing."""
