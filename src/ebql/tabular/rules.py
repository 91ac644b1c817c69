"""Bootstrap rules: who selects the next action, and who says what it is worth.

A rule looks at the next state's values, `q[member, action]` of shape `(K, A)`, from the side of the
member that is being updated, and returns the value to bootstrap from. It is the only thing in which the
agents of this floor differ. To add a rule, write the function, give it a `Rule` and a line in `bootstrap`.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled, inlined

Floats = NDArray[np.float64]


class Rule(IntEnum):
    """The name of each rule, as a number that compiled code can switch on."""

    MAXIMUM = 0
    ENSEMBLE = 1


@compiled
def argmax(values: Floats, rng: np.random.Generator) -> int:
    """Return the index of the largest of `values`, `(A,)`; ties are broken uniformly at random."""
    best, ties = 0, 1
    for action in range(1, len(values)):
        if values[action] > values[best]:
            best, ties = action, 1
        elif values[action] == values[best]:
            ties += 1
            # The n-th of the tied replaces the one held with probability 1/n: each is equally likely.
            if rng.random() * ties < 1.0:
                best = action
    return best


@inlined
def maximum(q: Floats, member: int, _rng: np.random.Generator) -> float:
    """Q-learning: the member selects and evaluates alike, max_a Q^k(s', a)."""
    return float(q[member].max())


@inlined
def ensemble(q: Floats, member: int, rng: np.random.Generator) -> float:
    """EBQL (algorithm 1): the member selects, the mean of all others evaluates.

    With two members this is double Q-learning (equation 3).
    """
    selected = argmax(q[member], rng)
    total = 0.0
    for evaluator in range(len(q)):
        if evaluator != member:
            total += q[evaluator, selected]
    return total / (len(q) - 1)


@inlined
def bootstrap(rule: int, q: Floats, member: int, rng: np.random.Generator) -> float:
    """Apply the rule of that number to the next state's values `q`, `(K, A)`."""
    if rule == Rule.MAXIMUM:
        return maximum(q, member, rng)
    return ensemble(q, member, rng)
