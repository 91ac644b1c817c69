"""The adaptive split: how many members should select and how many evaluate, by what the members know.

The estimators floor has the error of every split of samples (`ebql.estimators.exact_moments`). Here a
sample of an action's value is what one member says of it: K members are K samples of each arm, and their
means and spreads stand for the true ones. Two things are made good first. Estimated means lie further apart
than true ones, so they are drawn together, as `ebql.estimators.correct_winner` does; where the members know
of no difference between actions, a wrong choice costs nothing, and one selector is enough. And for more
than two arms P(â* = a) is an integral, too slow for every update: the paper's product of Φ's, exact for two,
takes its place.
"""

from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def likely_gaps(q: Floats) -> tuple[Floats, Floats]:
    """How far each action's true mean likely lies below the best, and one member's variance; both `(A,)`.

    Of values `q`, `(K, A)`, at least 2 of each. Means vary over actions by the true means' variance plus that
    of their errors; they are drawn to their average until only the first is left.
    """
    members, actions = q.shape
    means, variances = np.zeros(actions), np.zeros(actions)
    for action in range(actions):
        for member in range(members):
            means[action] += q[member, action]
        means[action] /= members
        for member in range(members):
            variances[action] += (q[member, action] - means[action]) ** 2
        variances[action] /= members - 1
    total = ((means - means.mean()) ** 2).sum()
    noise = variances.mean() / members * (actions - 1)
    kept = sqrt(1.0 - noise / total) if total > noise else 0.0
    return kept * (means.max() - means), variances


@compiled
def split_error(gaps: Floats, variances: Floats, ensemble_size: int, n_index: int) -> float:
    """Mean squared error of estimating the largest mean when `n_index` of K members select.

    `gaps`, `(A,)`, are how far the means lie below the largest, `variances` those of one member's values.
    Appendix C: Σ_a (σ_a² / (K - n) + Δ_a²) P(â* = a). The best arm is chosen if it beats each other one,
    P = Π_a Φ(Δ_a / √((σ_*² + σ_a²) / n)), and the rest is shared out by how likely each one beats it.
    """
    best = gaps.argmin()
    found, beaten, costs = 1.0, 0.0, 0.0
    for action in range(len(gaps)):
        if action != best:
            spread = sqrt((variances[best] + variances[action]) / n_index)
            by_chance = 0.5 if gaps[action] == 0.0 else 0.0
            mistaken = 0.5 * erfc(gaps[action] / (spread * sqrt(2.0))) if spread > 0.0 else by_chance
            found *= 1.0 - mistaken
            beaten += mistaken
            costs += mistaken * (variances[action] / (ensemble_size - n_index) + gaps[action] ** 2)
    right = found * variances[best] / (ensemble_size - n_index)
    return float(right + (1.0 - found) * costs / beaten) if beaten > 0.0 else float(right)


@compiled
def best_split(q: Floats) -> int:
    """How many of K members should select at values `q`, `(K, A)`: from 1 to K - 1, the fewer if alike."""
    members, actions = q.shape
    if actions == 1:
        return 1
    gaps, variances = likely_gaps(q)
    if gaps.max() == 0.0:
        return 1
    chosen, least = 1, np.inf
    for n_index in range(1, members):
        error = split_error(gaps, variances, members, n_index)
        if error < least:
            chosen, least = n_index, error
    return chosen
