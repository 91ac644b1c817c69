"""The adaptive split: the members' means and spreads determine how many members select.

`ebql.estimators.exact_moments` gives the error of every split of samples. Here each action is an arm and each
member's value is one sample of it. The sample means and variances replace the true ones, with two
adjustments. First, sample means vary more than true means, so they are shrunken towards their
average. If the members see no difference between actions, a wrong selection costs
nothing, and one selector is enough. Second, for more than two arms P(â* = a) is an integral, too slow for
every update. The paper's product of Φ's, which is exact for two arms, replaces it.
"""

from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def likely_gaps(q: Floats) -> tuple[Floats, Floats]:
    """Return each action's shrunken gap to the best action and its variance over members, both `(A,)`.

    `q`, `(K, A)`, has at least 2 members and 2 actions. The variance of sample means is that of the true
    means plus that of their errors; shrinking towards the average removes the second part.
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
    factor = sqrt(1.0 - noise / total) if total > noise else 0.0
    return factor * (means.max() - means), variances


@compiled
def split_error(gaps: Floats, variances: Floats, ensemble_size: int, n_index: int) -> float:
    """Return the mean squared error of estimating the largest mean if `n_index` of K members select.

    `gaps`, `(A,)`, are the distances of the means below the largest, `variances`, `(A,)`, those of one
    member's values. Appendix C: Σ_a (σ_a² / (K - n) + Δ_a²) P(â* = a). The best arm is selected with
    probability Π_a Φ(Δ_a / √((σ_*² + σ_a²) / n)). The remaining probability is divided among the other arms
    in proportion to their probability of beating the best arm.
    """
    best = gaps.argmin()
    p_best, total_mistakes, costs = 1.0, 0.0, 0.0
    for action in range(len(gaps)):
        if action != best:
            spread = sqrt((variances[best] + variances[action]) / n_index)
            p_tie = 0.5 if gaps[action] == 0.0 else 0.0
            p_mistake = 0.5 * erfc(gaps[action] / (spread * sqrt(2.0))) if spread > 0.0 else p_tie
            p_best *= 1.0 - p_mistake
            total_mistakes += p_mistake
            costs += p_mistake * (variances[action] / (ensemble_size - n_index) + gaps[action] ** 2)
    error = p_best * variances[best] / (ensemble_size - n_index)
    return float(error + (1.0 - p_best) * costs / total_mistakes) if total_mistakes > 0.0 else float(error)


@compiled
def best_split(q: Floats) -> int:
    """Return the best number of selectors, 1 to K - 1, for values `q`, `(K, A)`; ties go to the smaller."""
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
