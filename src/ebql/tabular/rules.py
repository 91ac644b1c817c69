"""Bootstrap rules: which members select the next action, and which evaluate it.

A rule gets the values of the next state, `q[member, action]` of shape `(K, A)`, and the member being
updated. It returns the value to bootstrap from. Some rules have one parameter. Rules that look back update
only the first table; the others hold earlier values of it (`ebql.tabular.kernel.store_past`). The parameter
of the adaptive split is chosen for each state by `ebql.tabular.splits`.

To add a rule, write its function, a member of `Rule`, a line in `bootstrap` and an agent in
`ebql.tabular.agents`. `docs/algorithms.md` has the equations.
"""

from enum import IntEnum
from math import erfc, exp, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ebql.compiled import compiled, inlined
from ebql.estimators.selection import MIDPOINTS

Floats = NDArray[np.float64]


class Rule(IntEnum):
    """The rules, as numbers for compiled code."""

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
    WEIGHTED = 14
    T_ESTIMATOR = 15
    K_ESTIMATOR = 16
    ORDER = 17
    ROBUST_MEAN = 18
    CANDIDATES = 19
    SMOOTHED = 20
    ADAPTIVE_ORDER = 21


# The rules of the paper's agents, which have a fast path.
PLAIN = frozenset({Rule.MAXIMUM, Rule.ENSEMBLE})
# With these rules only the first table learns; the others hold its past.
LOOKING_BACK = frozenset({Rule.AVERAGED, Rule.SELF_CORRECTING, Rule.SPEEDY})
# Agents with these rules act on the first table only.
ACTING_ON_THE_FIRST = frozenset({Rule.SELF_CORRECTING, Rule.SPEEDY})
# Agents with these rules act on the members' minimum, all others on their mean.
ACTING_ON_THE_MINIMUM = frozenset({Rule.MAXMIN})


# Φ at steps of 1/512 from -8 to 8. The weighted estimator needs it 3,000 times for one value of ten actions;
# between the steps, linear interpolation is 10 times faster than erfc and accurate to 2e-7.
_STEPS = 512
_NORMAL: Floats = ndtr(np.arange(-8 * _STEPS, 8 * _STEPS + 1) / _STEPS)


@compiled
def argmax(values: Floats, rng: np.random.Generator) -> int:
    """Return the index of the largest of `values`, `(A,)`; ties are broken uniformly at random."""
    best, ties = 0, 1
    for action in range(1, len(values)):
        if values[action] > values[best]:
            best, ties = action, 1
        elif values[action] == values[best]:
            ties += 1
            # The n-th tied index replaces the current one with probability 1/n, so all are equally likely.
            if rng.random() * ties < 1.0:
                best = action
    return best


@inlined
def maximum(q: Floats, member: int, _rng: np.random.Generator) -> float:
    """Q-learning: the member both selects and evaluates, max_a Q^k(s', a)."""
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
    """Ensemble and averaged Q-learning: the mean selects and evaluates, max_a mean_k Q^k(s', a)."""
    best = -np.inf
    for action in range(q.shape[1]):
        total = 0.0
        for member in range(len(q)):
            total += q[member, action]
        best = max(best, total / len(q))
    return best


@compiled
def maxmin(q: Floats) -> float:
    """Maxmin Q-learning: the largest minimum over members, max_a min_k Q^k(s', a)."""
    best = -np.inf
    for action in range(q.shape[1]):
        best = max(best, q[:, action].min())
    return best


@compiled
def weighted_double(q: Floats, member: int, c: float, rng: np.random.Generator) -> float:
    """Weighted double Q-learning: one of two members selects; both evaluate, with weights β and 1 - β.

    β = |V(a*) - V(a_L)| / (c + |V(a*) - V(a_L)|), where V are the values of the other member, and a* and
    a_L are the best and the worst action of the selecting member. A larger gap gives its own value more
    weight.
    """
    own, other = q[member], q[1 - member]
    best, worst = argmax(own, rng), argmax(-own, rng)
    gap = abs(other[best] - other[worst])
    beta = gap / (c + gap)
    mixed: float = beta * own[best] + (1.0 - beta) * other[best]
    return mixed


@compiled
def clipped_double(q: Floats, member: int, rng: np.random.Generator) -> float:
    """Clipped double Q-learning: the member selects, the lower of both values evaluates."""
    return float(q[:, argmax(q[member], rng)].min())


@compiled
def cross(q: Floats, member: int, rng: np.random.Generator) -> float:
    """Cross Q-learning: the member selects, a random other member evaluates."""
    selected = argmax(q[member], rng)
    evaluator = int(rng.random() * (len(q) - 1))
    value: float = q[evaluator + (evaluator >= member), selected]
    return value


@compiled
def subset_minimum(q: Floats, size: int, rng: np.random.Generator) -> float:
    """REDQ: `maxmin` of a random subset of `size` members, resampled for every update."""
    lowest = np.full(q.shape[1], np.inf)
    remaining = size
    for member in range(len(q)):
        if rng.random() * (len(q) - member) < remaining:
            lowest = np.minimum(lowest, q[member])
            remaining -= 1
    return float(lowest.max())


@compiled
def backup_weight(q: Floats, member: int, temperature: float, rng: np.random.Generator) -> float:
    """SUNRISE: the factor of the step size, 1 if the members agree on Q(s', a') and at least 1/2.

    It is sigmoid(-std * temperature) + 1/2, where a' is the member's best action and std is that of all
    members.
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
    """Speedy Q-learning, as the target of an update with step size `step` (α); `q` is Q_k, Q_{k-1}.

    With M Q = max_a Q(s', a), the update α (M Q_{k-1} - ...) + (1 - α) (M Q_k - M Q_{k-1}) is a step of
    size α towards M Q_{k-1} + (1 - α) / α (M Q_k - M Q_{k-1}).
    """
    latest, before = q[0].max(), q[1].max()
    if step == 0.0:
        return float(latest)
    return float(before + (1.0 - step) / step * (latest - before))


@compiled
def split(q: Floats, member: int, n_index: int, rng: np.random.Generator) -> float:
    """EBQL with `n_index` selectors: their mean selects, the mean of the other members evaluates.

    The selectors are the member and the next ones in cyclic order. So a member never evaluates its own
    selection, all members select and evaluate equally often, and no random number is needed.
    """
    selectors = np.zeros(q.shape[1])
    for offset in range(n_index):
        selectors += q[(member + offset) % len(q)]
    selected = argmax(selectors, rng)
    total = 0.0
    for offset in range(n_index, len(q)):
        total += q[(member + offset) % len(q), selected]
    return total / (len(q) - n_index)


@inlined
def quick_normal(z: float) -> float:
    """Return Φ(z), by interpolation in a table."""
    place = (z + 8.0) * _STEPS
    if place <= 0.0:
        return 0.0
    index = int(min(place, 16.0 * _STEPS))
    if index >= 16 * _STEPS:
        return 1.0
    lower: float = _NORMAL[index]
    upper: float = _NORMAL[index + 1]
    return lower + (place - index) * (upper - lower)


@compiled
def variance(q: Floats, action: int) -> float:
    """Return the variance of an action's value over the members, with the divisor K - 1."""
    centre = 0.0
    for member in range(len(q)):
        centre += q[member, action]
    centre /= len(q)
    total = 0.0
    for member in range(len(q)):
        total += (q[member, action] - centre) ** 2
    return total / (len(q) - 1)


@compiled
def weighted(q: Floats) -> float:
    """D'Eramo's weighted estimator: Σ_a P(a is best) mean_k Q^k(s', a), with Gaussian errors of the means.

    P(a) averages Π_{j≠a} Φ_j over the midpoints of equal shares of a's distribution, as in
    `ebql.estimators.selection.quick_selection_probabilities`.
    """
    members, actions = q.shape
    means, errors = np.zeros(actions), np.zeros(actions)
    for action in range(actions):
        for member in range(members):
            means[action] += q[member, action]
        means[action] /= members
        errors[action] = sqrt(variance(q, action) / members)
    value, total = 0.0, 0.0
    for action in range(actions):
        wins = 0.0
        for midpoint in MIDPOINTS:
            point = means[action] + errors[action] * midpoint
            below = 1.0
            for other in range(actions):
                if other != action:
                    if errors[other] > 0.0:
                        below *= quick_normal((point - means[other]) / errors[other])
                    elif point <= means[other]:
                        below *= 0.5 if point == means[other] else 0.0
            wins += below
        value += wins * means[action]
        total += wins
    return value / total


@compiled
def score(q: Floats, member: int, action: int, best: int, best_variance: float) -> float:
    """Return by how many standard errors of their difference an action is below the member's best.

    `best_variance` is the variance of the best action's value, which a caller needs for every action.
    """
    gap = q[member, action] - q[member, best]
    spread = sqrt(variance(q, action) + best_variance)
    if spread > 0.0:
        return float(gap / spread)
    return -np.inf if gap < 0.0 else 0.0


@compiled
def t_estimator(q: Floats, member: int, alpha: float, rng: np.random.Generator) -> float:
    """T-estimator: the mean of all actions that a test at level α cannot tell from the member's best."""
    best = argmax(q[member], rng)
    best_variance = variance(q, best)
    total, kept = 0.0, 0
    for action in range(q.shape[1]):
        # Φ(score) >= α is score >= z_α.
        if 0.5 * erfc(-score(q, member, action, best, best_variance) / sqrt(2.0)) >= alpha:
            total += q[member, action]
            kept += 1
    return total / kept


@compiled
def k_estimator(q: Floats, member: int, scale: float, rng: np.random.Generator) -> float:
    """K-estimator: all actions, weighted by Φ(score / scale)."""
    best = argmax(q[member], rng)
    best_variance = variance(q, best)
    total, weights = 0.0, 0.0
    for action in range(q.shape[1]):
        weight = 0.5 * erfc(-score(q, member, action, best, best_variance) / scale / sqrt(2.0))
        total += weight * q[member, action]
        weights += weight
    return total / weights


@compiled
def order(q: Floats, index: int) -> float:
    """Order Q-learning: the largest `index`-th smallest value over members; 1 is `maxmin`."""
    best = -np.inf
    # One array for all actions, sorted by insertion: np.sort would allocate one for each.
    ascending = np.empty(len(q))
    for action in range(q.shape[1]):
        for member in range(len(q)):
            place = member
            while place > 0 and ascending[place - 1] > q[member, action]:
                ascending[place] = ascending[place - 1]
                place -= 1
            ascending[place] = q[member, action]
        best = max(best, ascending[index - 1])
    return best


@compiled
def adaptive_order(q: Floats) -> float:
    """Adaptive order: the index is (K + c) / 4, rounded up, where c members select the best of their mean.

    Ties go to the first action; they only matter for the index.
    """
    best = q.sum(0).argmax()
    agreeing = 0
    for member in range(len(q)):
        agreeing += q[member].argmax() == best
    return order(q, -(-(len(q) + agreeing) // 4))


@compiled
def robust_mean(q: Floats, rho: float) -> float:
    """2RA Q-learning: the maximum of the members' mean minus √ρ."""
    return mean_maximum(q) - sqrt(rho)


@compiled
def candidates(q: Floats, member: int, size: int, rng: np.random.Generator) -> float:
    """Action-candidate clipped double Q-learning, of two members.

    The other member names its `size` best actions; the member selects the best of them. The other evaluates
    it, at most with the member's own maximum.
    """
    own, other = q[member], q[1 - member].copy()
    among = np.full(len(own), -np.inf)
    for _ in range(min(size, len(own))):
        named = argmax(other, rng)
        among[named] = own[named]
        other[named] = -np.inf
    return float(min(q[1 - member, argmax(among, rng)], own.max()))


@compiled
def smoothed(q: Floats, member: int, tau: float) -> float:
    """Smoothed Q-learning: the maximum with weight 1 - τ, the mean of the other actions with weight τ."""
    own = q[member]
    best = own.max()
    if len(own) == 1:
        return float(best)
    return float((1.0 - tau) * best + tau * (own.sum() - best) / (len(own) - 1))


@inlined
def bootstrap_plainly(rule: int, q: Floats, member: int, rng: np.random.Generator) -> float:
    """Apply one of the two rules of the paper's agents, inlined into the calling loop."""
    if rule == Rule.MAXIMUM:
        return maximum(q, member, rng)
    return ensemble(q, member, rng)


@compiled
def bootstrap(
    rule: int, parameter: float, step: float, q: Floats, member: int, rng: np.random.Generator
) -> float:
    """Apply `rule`, a `Rule`, to the values of the next state, `q`, `(K, A)`.

    `parameter` is the parameter of the rule, if it has one; `step` is α.
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
    if rule == Rule.WEIGHTED:
        return weighted(q)
    if rule == Rule.T_ESTIMATOR:
        return t_estimator(q, member, parameter, rng)
    if rule == Rule.K_ESTIMATOR:
        return k_estimator(q, member, parameter, rng)
    if rule == Rule.ORDER:
        return order(q, int(parameter))
    if rule == Rule.ADAPTIVE_ORDER:
        return adaptive_order(q)
    if rule == Rule.ROBUST_MEAN:
        return robust_mean(q, parameter)
    if rule == Rule.CANDIDATES:
        return candidates(q, member, int(parameter), rng)
    if rule == Rule.SMOOTHED:
        return smoothed(q, member, parameter)
    return bootstrap_plainly(rule, q, member, rng)
