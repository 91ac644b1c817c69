"""How an ensemble acts: on its mean, on upper confidence bounds, or on one member per episode.

With each of them, a random action is taken with probability ε.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled
from ebql.tabular.rules import argmax

Floats = NDArray[np.float64]


class Behaviour(IntEnum):
    """The values that the greedy action maximises, as a number for compiled code."""

    MEAN = 0
    UCB = 1
    THOMPSON = 2


@compiled
def upper_bounds(q: Floats, width: float) -> Floats:
    """Return mean plus `width` standard deviations over members, `(A,)`, of values `q`, `(K, A)`."""
    bounds = np.empty(q.shape[1])
    for action in range(q.shape[1]):
        bounds[action] = q[:, action].mean() + width * q[:, action].std()
    return bounds


@compiled
def greedy_action(q: Floats, behaviour: int, ucb_width: float, actor: int, rng: np.random.Generator) -> int:
    """Return the best action by the member `actor` (Thompson) or by upper bounds (UCB); `q` is `(K, A)`."""
    if behaviour == Behaviour.THOMPSON:
        return argmax(q[actor], rng)
    return argmax(upper_bounds(q, ucb_width), rng)
