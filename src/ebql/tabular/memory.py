"""What one agent remembers, how it learns and what a run writes down, as tuples that compiled code can read.

Tables are laid out `(S, A, K)`: an update sums one entry over the members, so these lie side by side.
`acted_on`, `(S, A)`, always holds that sum, or for pessimistic agents the minimum, so that acting costs the
same for every ensemble size.
Where a rule looks back, only the first table learns, and the others are its past.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Memory(NamedTuple):
    """All that one agent remembers; the compiled functions change it in place."""

    tables: Floats  # (S, A, K)
    acted_on: Floats  # (S, A), sum, or minimum, of the tables that the agent acts on
    updates: Ints  # (S, A, K), how often each entry was updated
    visits: Ints  # (S,), how often an action was chosen in each state
    clock: Ints  # (1,), steps learnt from
    actor: Ints  # (1,), the member that acts in this episode, where one does
    splits: Ints  # (2,), the adaptive splits chosen so far: their sum, and how many


class Settings(NamedTuple):
    """How one agent learns; rates as `Schedule` defines them."""

    rule: int
    turn: int
    discount: float
    epsilon_scales: Floats  # (episodes,)
    epsilon_power: float
    epsilon_decay: Floats  # see `decay_table`
    step_scales: Floats  # (episodes,)
    step_power: float
    step_decay: Floats
    plain: bool  # nothing of what follows is asked for
    parameter: float  # the rule's own number
    mask_probability: float  # with masked turns: that a member learns from a step
    learners: int  # the first so many tables learn
    acting: int  # the first so many tables are acted on
    pessimistic: bool  # on their minimum
    behaviour: int
    ucb_width: float


class Record(NamedTuple):
    """What a run writes down: every episode's outcome, and the followed states every so often."""

    returns: Floats  # (episodes,), discounted
    lengths: Ints  # (episodes,)
    at: Ints  # (R,), number of episodes done when the followed states are looked at, ascending
    states: Ints  # (D,), the followed states
    values: Floats  # (R, D, A), what is acted on: the mean of the members, or their minimum
    epsilons: Floats  # (R, D), exploration rate that the next visit would have


def empty_memory(tables: Floats, *, pessimistic: bool) -> Memory:
    """Nothing learnt yet; `tables`, `(S, A, K)`, as the agent starts with them."""
    shape = tables.shape
    acted_on = np.zeros(shape[:2])
    if pessimistic:
        acted_on = tables.min(-1)
    elif tables.any():
        for member in range(shape[2]):
            acted_on += tables[..., member]  # one by one, as the compiled code adds them
    return Memory(
        tables=tables,
        acted_on=acted_on,
        updates=np.zeros(shape, dtype=np.int64),
        visits=np.zeros(shape[0], dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
        actor=np.zeros(1, dtype=np.int64),
        splits=np.zeros(2, dtype=np.int64),
    )


@cache
def decay_table(power: float, length: int = 4096) -> Floats:
    """All visits ** -power for visits below `length`: most of the powers that a run needs, computed once."""
    return np.array([0.0, *(visits**-power for visits in range(1, length))])
