"""How an ensemble acts: on what all say together, on what their spread leaves possible, or on one member.

One member acts for an episode. A random action is taken with probability ε whichever it is.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled
from ebql.tabular.rules import argmax

Floats = NDArray[np.float64]


class Behaviour(IntEnum):
    """What the greedy action is greedy in, as a number that compiled code can switch on."""

    MEAN = 0
    UCB = 1
    THOMPSON = 2


@compiled
def upper_bounds(q: Floats, width: float) -> Floats:
    """Mean plus `width` standard deviations over the members, `(A,)`, of values `q`, `(K, A)`."""
    bounds = np.empty(q.shape[1])
    for action in range(q.shape[1]):
        bounds[action] = q[:, action].mean() + width * q[:, action].std()
    return bounds


@compiled
def greedy_otherwise(
    q: Floats, behaviour: int, ucb_width: float, actor: int, rng: np.random.Generator
) -> int:
    """The best action by the member `actor` (Thompson) or by upper bounds, of values `q`, `(K, A)`."""
    if behaviour == Behaviour.THOMPSON:
        return argmax(q[actor], rng)
    return argmax(upper_bounds(q, ucb_width), rng)
