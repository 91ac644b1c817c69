"""Prioritised replay, and which sampler a config asks for.

A sampler knows rows by their place in the replay's ring and does not look at what is stored there.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled
from ebql.deep.config.base import AgentConfig
from ebql.deep.replay.ring import Draw, Ints, Uniform

Floats = NDArray[np.float64]


class Sampler(Protocol):
    """Draws rows of a ring."""

    def added(self, first: int, n: int) -> None:
        """Note that `n` rows were written from `first` on, wrapping around the ring's end."""

    def draw(self, n: int, size: int, step: int, rng: np.random.Generator) -> Draw:
        """Return `n` of the `size` filled rows, sampled with replacement at agent step `step`."""

    def update(self, rows: Ints, errors: NDArray[Any]) -> None:
        """Set the priorities of the rows just sampled by the members' errors, (n,) and not negative."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what `restore` needs."""

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore a saved `state`."""


def make_sampler(config: AgentConfig, capacity: int) -> Sampler:
    """Return the config's sampler of a ring with this capacity."""
    if not config.prioritized:
        return Uniform()
    return Prioritized(capacity, config.priority_alpha, config.priority_beta, config.priority_beta_steps)


class Prioritized:
    """Proportional prioritised replay (Schaul et al., 2016): P(i) ∝ pᵢ = (|error| + ε)^α.

    A row's weight is (N P(i))^−β over the largest such weight of its batch, which corrects the bias of the
    sampling by β; β rises to 1 over `beta_steps` agent steps. A new row has the largest priority so far, so
    that every row is sampled soon.
    """

    EPS = 1e-6
    """Added to errors, so that every row can be sampled again."""

    def __init__(self, capacity: int, alpha: float, beta: float, beta_steps: int) -> None:
        self._capacity, self._alpha, self._beta, self._beta_steps = capacity, alpha, beta, beta_steps
        self._tree = empty_tree(capacity)
        self._largest = 1.0
        self._filled = 0

    def added(self, first: int, n: int) -> None:
        """Give new rows the largest priority so far."""
        rows = (first + np.arange(n)) % self._capacity
        write_leaves(self._tree, rows, np.full(n, self._largest))
        self._filled = min(self._filled + n, self._capacity)

    def draw(self, n: int, size: int, step: int, rng: np.random.Generator) -> Draw:
        """Return `n` rows, one from each n-th part of the total priority, and their weights."""
        rows = find_leaves(self._tree, (np.arange(n) + rng.random(n)) / n)
        probabilities = leaves(self._tree)[rows] / self._tree[1]
        beta = self._beta + min(step / self._beta_steps, 1.0) * (1 - self._beta)
        weights = (size * probabilities) ** -beta
        return Draw(rows, (weights / weights.max()).astype(np.float32))

    def update(self, rows: Ints, errors: NDArray[Any]) -> None:
        """Set the priorities of the rows just sampled; of a row sampled twice, the later error stays."""
        priorities = (errors.astype(np.float64) + self.EPS) ** self._alpha
        write_leaves(self._tree, rows, priorities)
        self._largest = max(self._largest, float(priorities.max()))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the priorities; the tree's sums follow from them exactly, whatever the order of writing."""
        return {
            "priorities": leaves(self._tree)[: self._filled],
            "largest_priority": np.array(self._largest),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore a saved `state`."""
        self._tree = empty_tree(self._capacity)
        priorities = np.ascontiguousarray(state["priorities"], np.float64)
        self._filled, self._largest = len(priorities), float(state["largest_priority"])
        # Compiled code checks no bounds.
        if priorities.shape != (self._filled,) or self._filled > self._capacity:
            raise ValueError(f"priorities of shape {priorities.shape} are not for {self._capacity} rows")
        write_leaves(self._tree, np.arange(self._filled), priorities)


# A sum tree in one array (2 L,), L the power of two that has room for all rows: node 1 is the root, node
# i has the children 2 i and 2 i + 1, and the leaves begin at L. A node is always the sum of its children,
# computed anew and never adjusted by a difference, so rounding can't build up.


def empty_tree(capacity: int) -> Floats:
    """Return a sum tree over `capacity` zeros."""
    return np.zeros(2 << (capacity - 1).bit_length())


def leaves(tree: Floats) -> Floats:
    """Return the leaves, a view of (L,) with room for all rows."""
    return tree[len(tree) // 2 :]


@compiled
def write_leaves(tree: Floats, rows: Ints, values: Floats) -> None:
    """Set the leaves at `rows` (n,) to `values` (n,), and every sum above them."""
    n_leaves = len(tree) // 2
    for i in range(len(rows)):
        node = n_leaves + rows[i]
        tree[node] = values[i]
        while node > 1:
            node //= 2
            tree[node] = tree[2 * node] + tree[2 * node + 1]


@compiled
def find_leaves(tree: Floats, fractions: Floats) -> Ints:
    """Return the rows (n,) in which these fractions (n,) of the total lie, each in [0, 1)."""
    n_leaves = len(tree) // 2
    rows = np.empty(len(fractions), np.int64)
    for i in range(len(fractions)):
        mass, node = fractions[i] * tree[1], 1
        while node < n_leaves:
            left, right = tree[2 * node], tree[2 * node + 1]
            # Rounding may leave a little too much mass: an empty side is never entered.
            if mass < left or right == 0.0:
                node = 2 * node
            else:
                mass, node = mass - left, 2 * node + 1
        rows[i] = node - n_leaves
    return rows
