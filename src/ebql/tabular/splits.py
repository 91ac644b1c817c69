"""The adaptive split: how many members should select and how many evaluate, by what the members know.

The estimators floor has the error of every split of samples (`ebql.estimators.exact_moments`). Here a
sample of an action's value is what one member says of it, so K members are K samples of each arm, and their
means and spreads stand for the true ones. Of the arms only the two best by the mean count: for two arms
P(â* = a) is a closed form, cheap enough for every update.
"""

from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def split_error(
    gap: float, best_variance: float, other_variance: float, ensemble_size: int, n_index: int
) -> float:
    """Mean squared error of estimating the larger of two means when `n_index` of K members select.

    `gap` ≥ 0 is how far the means lie apart, the variances are of one member's value. Appendix C for two
    arms: Σ_a (σ_a² / (K - n) + Δ_a²) P(â* = a), where P(the lesser one) = Φ(-Δ / √((σ_1² + σ_2²) / n)).
    """
    spread = sqrt((best_variance + other_variance) / n_index)
    by_chance = 0.5 if gap == 0.0 else 0.0
    mistaken = 0.5 * erfc(gap / (spread * sqrt(2.0))) if spread > 0.0 else by_chance
    n_evaluators = ensemble_size - n_index
    chosen_well = best_variance / n_evaluators * (1.0 - mistaken)
    return chosen_well + (other_variance / n_evaluators + gap * gap) * mistaken


@compiled
def two_best(q: Floats) -> tuple[float, float, float]:
    """Gap between the two actions with the best means over members, and their variances; at least 2 of each.

    Variances are a single member's, estimated without bias (divided by K - 1).
    """
    members, actions = q.shape
    best, second = -1, -1
    means = np.zeros(actions)
    for action in range(actions):
        for member in range(members):
            means[action] += q[member, action]
        means[action] /= members
        if best < 0 or means[action] > means[best]:
            best, second = action, best
        elif second < 0 or means[action] > means[second]:
            second = action
    variances = np.zeros(2)
    for place, action in enumerate((best, second)):
        for member in range(members):
            variances[place] += (q[member, action] - means[action]) ** 2
    variances /= members - 1
    return means[best] - means[second], variances[0], variances[1]


@compiled
def best_split(q: Floats) -> int:
    """How many of K members should select at values `q`, `(K, A)`: from 1 to K - 1, the fewer if alike."""
    members, actions = q.shape
    if actions == 1:
        return 1
    gap, best_variance, other_variance = two_best(q)
    chosen, least = 1, np.inf
    for n_index in range(1, members):
        error = split_error(gap, best_variance, other_variance, members, n_index)
        if error < least:
            chosen, least = n_index, error
    return chosen
