"""Bootstrap rules: who selects the next action, and who says what it is worth.

A rule looks at the next state's values, `q[member, action]` of shape `(K, A)`, from the side of the
member that is being updated, and returns the value to bootstrap from. Some rules have one number of their
own, and some look back: of their tables only the first learns, and the others hold what it said before
(`ebql.tabular.kernel.remember`). The adaptive split's number is chosen for each state, by
`ebql.tabular.splits`. To add a rule, write the function, give it a `Rule`, a line in `bootstrap` and an agent
in `ebql.tabular.agents`; `docs/algorithms.md` has the equations.
"""

from enum import IntEnum
from math import exp

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled, inlined

Floats = NDArray[np.float64]


class Rule(IntEnum):
    """The name of each rule, as a number that compiled code can switch on."""

    MAXIMUM = 0
    ENSEMBLE = 1
    MEAN = 2
    AVERAGED = 3
    MAXMIN = 4
    WEIGHTED_DOUBLE = 5
    CLIPPED_DOUBLE = 6
    CROSS = 7
    SUBSET_MINIMUM = 8
    SUNRISE = 9
    SELF_CORRECTING = 10
    SPEEDY = 11
    SPLIT = 12
    ADAPTIVE_SPLIT = 13


# What the paper's own agents bootstrap by.
PLAIN = frozenset({Rule.MAXIMUM, Rule.ENSEMBLE})
# Of the tables of these rules only the first learns; the others are its past.
LOOKING_BACK = frozenset({Rule.AVERAGED, Rule.SELF_CORRECTING, Rule.SPEEDY})
# Of these, acting is left to the first table.
ACTING_ON_THE_FIRST = frozenset({Rule.SELF_CORRECTING, Rule.SPEEDY})
# Members of these say together what the least of them says, where those of all others say their mean.
ACTING_ON_THE_MINIMUM = frozenset({Rule.MAXMIN})


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


@compiled
def mean_maximum(q: Floats) -> float:
    """Ensemble and averaged Q-learning: all select and evaluate together, max_a mean_k Q^k(s', a)."""
    best = -np.inf
    for action in range(q.shape[1]):
        total = 0.0
        for each in range(len(q)):
            total += q[each, action]
        best = max(best, total / len(q))
    return best


@compiled
def maxmin(q: Floats) -> float:
    """Maxmin Q-learning: the most that all members grant, max_a min_k Q^k(s', a)."""
    best = -np.inf
    for action in range(q.shape[1]):
        best = max(best, q[:, action].min())
    return best


@compiled
def weighted_double(q: Floats, member: int, c: float, rng: np.random.Generator) -> float:
    """Weighted double Q-learning: the member selects; it and the other of two evaluate, by β and 1 - β.

    β = |V(a*) - V(a_L)| / (c + |V(a*) - V(a_L)|), V the other's values, a* and a_L the best and the worst
    action by the member's: the more the choice matters, the more the member's own word counts.
    """
    own, other = q[member], q[1 - member]
    best, worst = argmax(own, rng), argmax(-own, rng)
    gap = abs(other[best] - other[worst])
    beta = gap / (c + gap)
    mixed: float = beta * own[best] + (1.0 - beta) * other[best]
    return mixed


@compiled
def clipped_double(q: Floats, member: int, rng: np.random.Generator) -> float:
    """Clipped double Q-learning: the member selects, and the lower of the two evaluates."""
    return float(q[:, argmax(q[member], rng)].min())


@compiled
def cross(q: Floats, member: int, rng: np.random.Generator) -> float:
    """Cross Q-learning: the member selects, one of the others, drawn at random, evaluates."""
    selected = argmax(q[member], rng)
    evaluator = int(rng.random() * (len(q) - 1))
    value: float = q[evaluator + (evaluator >= member), selected]
    return value


@compiled
def subset_minimum(q: Floats, size: int, rng: np.random.Generator) -> float:
    """REDQ: `maxmin` of `size` members, drawn anew for every update without replacement."""
    lowest = np.full(q.shape[1], np.inf)
    wanted = size
    for each in range(len(q)):
        if rng.random() * (len(q) - each) < wanted:
            lowest = np.minimum(lowest, q[each])
            wanted -= 1
    return float(lowest.max())


@compiled
def backup_weight(q: Floats, member: int, temperature: float, rng: np.random.Generator) -> float:
    """SUNRISE: what a step is multiplied by, from 1 where the members agree on Q(s', a') down to 1/2.

    sigmoid(-std * temperature) + 1/2, where a' is the member's best action and std that of all members.
    """
    spread: float = q[:, argmax(q[member], rng)].std()
    return 1.0 / (1.0 + exp(spread * temperature)) + 0.5


@compiled
def self_correcting(q: Floats, beta: float, rng: np.random.Generator) -> float:
    """Self-correcting Q-learning: Q_n - β (Q_n - Q_{n-1}) selects, Q_n evaluates; `q` is Q_n, Q_{n-1}."""
    latest, before = q[0], q[1]
    value: float = latest[argmax(latest - beta * (latest - before), rng)]
    return value


@compiled
def speedy(q: Floats, step: float) -> float:
    """Speedy Q-learning, as a value to move a `step` (α) towards; `q` is Q_k, Q_{k-1}.

    With M Q = max_a Q(s', a), α (M Q_{k-1} - ...) + (1 - α) (M Q_k - M Q_{k-1}) is a step towards
    M Q_{k-1} + (1 - α) / α (M Q_k - M Q_{k-1}).
    """
    latest, before = q[0].max(), q[1].max()
    if step == 0.0:
        return float(latest)
    return float(before + (1.0 - step) / step * (latest - before))


@compiled
def split(q: Floats, member: int, n_index: int, rng: np.random.Generator) -> float:
    """EBQL with `n_index` selectors: their mean selects, the mean of the other members evaluates.

    The selectors are the member and those after it in a circle, so its own table never says what its
    choice is worth, every member selects and evaluates equally often, and no random number is spent.
    """
    selectors = np.zeros(q.shape[1])
    for place in range(n_index):
        selectors += q[(member + place) % len(q)]
    selected = argmax(selectors, rng)
    total = 0.0
    for place in range(n_index, len(q)):
        total += q[(member + place) % len(q), selected]
    return total / (len(q) - n_index)


@inlined
def bootstrap_plainly(rule: int, q: Floats, member: int, rng: np.random.Generator) -> float:
    """Apply one of the two rules of the paper's own agents, merged into the loop around it."""
    if rule == Rule.MAXIMUM:
        return maximum(q, member, rng)
    return ensemble(q, member, rng)


@compiled
def bootstrap(
    rule: int, parameter: float, step: float, q: Floats, member: int, rng: np.random.Generator
) -> float:
    """Apply the rule of that number to the next state's values `q`, `(K, A)`.

    `parameter` is the rule's own number, if it has one, and `step` is α.
    """
    if rule == Rule.MEAN or rule == Rule.AVERAGED:
        return mean_maximum(q)
    if rule == Rule.MAXMIN:
        return maxmin(q)
    if rule == Rule.WEIGHTED_DOUBLE:
        return weighted_double(q, member, parameter, rng)
    if rule == Rule.CLIPPED_DOUBLE:
        return clipped_double(q, member, rng)
    if rule == Rule.CROSS:
        return cross(q, member, rng)
    if rule == Rule.SUBSET_MINIMUM:
        return subset_minimum(q, int(parameter), rng)
    if rule == Rule.SUNRISE:
        return maximum(q, member, rng)
    if rule == Rule.SELF_CORRECTING:
        return self_correcting(q, parameter, rng)
    if rule == Rule.SPEEDY:
        return speedy(q, step)
    if rule == Rule.SPLIT or rule == Rule.ADAPTIVE_SPLIT:
        return split(q, member, int(parameter), rng)
    return bootstrap_plainly(rule, q, member, rng)
