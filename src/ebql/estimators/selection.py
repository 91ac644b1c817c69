"""Which arm looks best: P(â* = a) when each arm's mean is known with a Gaussian error."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ebql.estimators.arrays import FloatArray, estimated_arms
from ebql.estimators.quadrature import exactly_known, gaussian_line, log_cdf


def selection_probabilities(means: ArrayLike, errors: ArrayLike) -> FloatArray:
    """Return P(arm a has the largest estimate), (..., m), for independent Gaussian estimates.

    `means` and `errors` broadcast to (..., m); an error is the standard error of the selector's mean
    (σ_a / √N_1), and 0 says that the mean is known. Two arms have a closed form; more than two take the
    integral ∫ f_a(x) Π_{j≠a} F_j(x) dx, which the paper's product of Φ's replaces for m = 2 only.
    """
    means, errors = estimated_arms(means, errors)
    if means.shape[-1] == 1:
        return np.ones(means.shape)
    return _of_two(means, errors) if means.shape[-1] == 2 else _of_many(means, errors)


def winning_atoms(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    """Return P(arm a is the largest) of the exactly known arms, (m,), and 0 for all others.

    A known arm wins when it tops the known ones and every other arm falls below; ties share.
    """
    known = exactly_known(gaps, errors)
    if not known.any():
        return np.zeros(gaps.size)
    best = gaps[known].max()
    winners = known & (gaps == best)
    log_below = log_cdf(best - gaps[~known], errors[~known]).sum()
    return np.where(winners, np.exp(log_below) / winners.sum(), 0.0)


def _of_two(means: FloatArray, errors: FloatArray) -> FloatArray:
    lead = means - means[..., ::-1]
    spread = np.hypot(errors[..., :1], errors[..., 1:])
    with np.errstate(over="ignore"):
        standardised = lead / np.where(spread == 0, 1.0, spread)
    probabilities: FloatArray = np.where(spread == 0, 0.5 + 0.5 * np.sign(lead), ndtr(standardised))
    return probabilities


def _of_many(means: FloatArray, errors: FloatArray) -> FloatArray:
    gaps = means - means.max(axis=-1, keepdims=True)
    m = means.shape[-1]
    rows = zip(gaps.reshape(-1, m), errors.reshape(-1, m), strict=True)
    return np.reshape([_of_one_row(*row) for row in rows], means.shape)


def _of_one_row(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    line = gaussian_line(gaps, errors)
    return line.winning_density() @ line.weight + winning_atoms(gaps, errors)
