"""The state of an agent, its settings and the record of a run, as tuples that compiled code can read.

Tables have the layout `(S, A, K)`, because an update sums one entry over all members. `action_values`, `(S,
A)`, always holds that sum (for pessimistic agents, the minimum), so the cost of acting does not depend on
the ensemble size. With rules that look back, only the first table learns; the others hold its past.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Memory(NamedTuple):
    """The state of an agent; compiled functions change it in place."""

    tables: Floats  # (S, A, K)
    action_values: Floats  # (S, A), sum (or minimum) of the tables that the agent acts on
    updates: Ints  # (S, A, K), number of updates of each entry
    visits: Ints  # (S,), number of actions chosen in each state
    clock: Ints  # (1,), number of steps learnt from
    actor: Ints  # (1,), the member that acts in this episode (Thompson only)
    splits: Ints  # (2,), sum and number of the adaptive splits so far


class Settings(NamedTuple):
    """The settings of an agent; `Schedule` defines the rates."""

    rule: int
    turn: int
    discount: float
    epsilon_scales: Floats  # (episodes,)
    epsilon_power: float
    epsilon_decay: Floats  # see `decay_table`
    step_scales: Floats  # (episodes,)
    step_power: float
    step_decay: Floats
    plain: bool  # whether the fast path applies, which ignores all fields below
    parameter: float  # the parameter of the rule
    mask_probability: float  # probability that a member learns from a step, with masked turns
    learners: int  # number of tables that learn, the first ones
    acting: int  # number of tables that are acted on, the first ones
    pessimistic: bool  # whether to act on their minimum instead of their mean
    behaviour: int
    ucb_width: float


class Record(NamedTuple):
    """The record of a run: the outcome of every episode, and periodic values of the tracked states."""

    returns: Floats  # (episodes,), discounted
    lengths: Ints  # (episodes,)
    at: Ints  # (R,), ascending: finished episodes at each record of the tracked states
    states: Ints  # (D,), the tracked states
    values: Floats  # (R, D, A), the values acted on: mean (or minimum) of the members
    epsilons: Floats  # (R, D), exploration rate of the next visit


def empty_memory(tables: Floats, *, pessimistic: bool) -> Memory:
    """Return the memory of a new agent that starts with `tables`, `(S, A, K)`."""
    shape = tables.shape
    action_values = np.zeros(shape[:2])
    if pessimistic:
        action_values = tables.min(-1)
    elif tables.any():
        for member in range(shape[2]):
            action_values += tables[..., member]  # in the order of the compiled code
    return Memory(
        tables=tables,
        action_values=action_values,
        updates=np.zeros(shape, dtype=np.int64),
        visits=np.zeros(shape[0], dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
        actor=np.zeros(1, dtype=np.int64),
        splits=np.zeros(2, dtype=np.int64),
    )


@cache
def decay_table(power: float, length: int = 4096) -> Floats:
    """Return visits ** -power for visits below `length`: most of the powers of a run, computed once."""
    return np.array([0.0, *(visits**-power for visits in range(1, length))])
