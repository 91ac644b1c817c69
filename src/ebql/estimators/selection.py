"""Selection probabilities P(â* = a) of arms whose means are estimated with Gaussian errors."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from ebql.estimators.arrays import FloatArray, estimated_arms
from ebql.estimators.quadrature import exactly_known, gaussian_line, log_cdf


def selection_probabilities(means: ArrayLike, errors: ArrayLike) -> FloatArray:
    """Return P(arm a has the largest estimate), (..., m), for independent Gaussian estimates.

    `means` and `errors` broadcast to (..., m). An error is the standard error of the selector's mean
    (σ_a / √N_1); 0 means that the mean is known exactly. Two arms have a closed form. More than two need the
    integral ∫ f_a(x) Π_{j≠a} F_j(x) dx; the paper's product of Φ's equals it only for m = 2.

    >>> selection_probabilities([0.5, 0.0], 1.0).round(3).tolist()
    [0.638, 0.362]
    """
    means, errors = estimated_arms(means, errors)
    if means.shape[-1] == 1:
        return np.ones(means.shape)
    return _two_arms(means, errors) if means.shape[-1] == 2 else _many_arms(means, errors)


# Each arm's distribution is represented by the midpoints of this many equal shares of its probability.
SHARES = 32
MIDPOINTS: FloatArray = ndtri((np.arange(SHARES) + 0.5) / SHARES)


def quick_selection_probabilities(means: FloatArray, errors: FloatArray) -> FloatArray:
    """Return P(arm a has the largest estimate), (..., m), by a fixed rule that is fast for many small rows.

    P(a) = ∫ Π_{j≠a} F_j(F_a⁻¹(u)) du by the midpoint rule, scaled to the sum 1. The integrand rises from 0 to
    1, so the error before scaling is at most half of 1 / SHARES, however unequal the errors are. Tables and
    networks use the same points. `selection_probabilities` is exact, but slow for many rows.
    """
    weights = np.empty(means.shape)
    for arm in range(means.shape[-1]):
        points = means[..., arm, None] + errors[..., arm, None] * MIDPOINTS
        distance = points[..., None, :] - means[..., :, None]
        # 0 / 0 is a tie between arms that are known exactly: Φ(0) shares it.
        with np.errstate(divide="ignore", invalid="ignore"):
            score = distance / errors[..., :, None]
        below = ndtr(np.where(np.isnan(score), 0.0, score))
        below[..., arm, :] = 1.0
        weights[..., arm] = below.prod(axis=-2).mean(axis=-1)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def winning_atoms(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    """Return P(arm a is the largest), (m,), for arms with exactly known means; 0 for all others.

    Such an arm wins if it is the largest of its kind and all other arms are below it. Ties share equally.
    """
    known = exactly_known(gaps, errors)
    if not known.any():
        return np.zeros(gaps.size)
    best = gaps[known].max()
    winners = known & (gaps == best)
    log_below = log_cdf(best - gaps[~known], errors[~known]).sum()
    return np.where(winners, np.exp(log_below) / winners.sum(), 0.0)


def _two_arms(means: FloatArray, errors: FloatArray) -> FloatArray:
    lead = means - means[..., ::-1]
    spread = np.hypot(errors[..., :1], errors[..., 1:])
    with np.errstate(over="ignore"):
        standardised = lead / np.where(spread == 0, 1.0, spread)
    probabilities: FloatArray = np.where(spread == 0, 0.5 + 0.5 * np.sign(lead), ndtr(standardised))
    return probabilities


def _many_arms(means: FloatArray, errors: FloatArray) -> FloatArray:
    gaps = means - means.max(axis=-1, keepdims=True)
    m = means.shape[-1]
    rows = zip(gaps.reshape(-1, m), errors.reshape(-1, m), strict=True)
    return np.reshape([_one_row(*row) for row in rows], means.shape)


def _one_row(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    # Arms that are alike share one row of the integral: with one best arm among many, there are two rows.
    alike = np.unique(np.stack([gaps, errors]), axis=1, return_inverse=True, return_counts=True)
    distinct, place, count = alike
    line = gaussian_line(*distinct)
    return (line.winning_density(count) @ line.weight)[place] + winning_atoms(gaps, errors)
