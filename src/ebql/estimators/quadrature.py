"""Integrals over the real line of products of Gaussian distribution functions.

Composite Gauss-Legendre. Each arm asks for panels no wider than its own standard error wherever its
distribution function is not yet constant, so narrow and wide arms are resolved alike. The panels' ends
are multiples of powers of two, hence arms of like spread share them, however many arms there are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from ebql.estimators.arrays import FloatArray

# Beyond 38 standard errors the Gaussian density underflows: a distribution function is 0 or 1 there.
_REACH = 38.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Finite, so that sums and differences of impossible events stay comparable; exp() of it is 0.
_LOG_ZERO = -1e300
_HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)


class Line(NamedTuple):
    """What integrals over x need to know of m independent Gaussians at the nodes x.

    `x` and `weight`: (nodes,), x measured from the largest mean; `log_cdf` and `log_pdf`: (m, nodes).
    An arm whose mean is known exactly (standard error 0) has a step for its cdf and no density.
    """

    x: FloatArray
    weight: FloatArray
    log_cdf: FloatArray
    log_pdf: FloatArray

    def winning_density(self) -> FloatArray:
        """Return f_a(x) Π_{j≠a} F_j(x), (m, nodes): the density of "arm a is the largest, at x"."""
        density: FloatArray = np.exp(self.log_pdf - self.log_cdf + self.log_cdf.sum(axis=0))
        return density


def exactly_known(gaps: FloatArray, errors: FloatArray) -> NDArray[np.bool]:
    """Tell which arms have a spread of 0, or one so small that floats around their mean can't resolve it."""
    limits = np.finfo(np.float64)
    known: NDArray[np.bool] = errors <= np.maximum(limits.eps * np.abs(gaps), limits.tiny)
    return known


def log_cdf(distance: FloatArray, errors: FloatArray) -> FloatArray:
    """Return log F at `distance` (m, ...) from each arm's mean, where `errors` broadcasts with it."""
    step = np.where(distance >= 0, 0.0, _LOG_ZERO)
    return np.where(errors == 0, step, log_ndtr(_standardised(distance, errors)))


def gaussian_line(gaps: FloatArray, errors: FloatArray) -> Line:
    """Place the nodes for arms with means `gaps` (m,), the largest 0, and standard `errors` (m,)."""
    errors = np.where(exactly_known(gaps, errors), 0.0, errors)
    ends = _panel_ends(gaps, errors)
    half_width = np.diff(ends) / 2
    from_left = half_width[:, None] * (1 + _NODES)
    # Left end minus mean is exact near the mean, where it matters; x itself may be rounded too coarsely.
    distance = ((ends[:-1] - gaps[:, None])[..., None] + from_left).reshape(gaps.size, -1)
    x = (ends[:-1, None] + from_left).ravel()
    weight = (half_width[:, None] * _WEIGHTS).ravel()
    spread = errors[:, None]
    return Line(x, weight, log_cdf(distance, spread), _log_pdf(distance, spread))


def _panel_ends(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    wanted = [_arm_ends(gap, error) for gap, error in zip(gaps.tolist(), errors.tolist(), strict=True)]
    # Further down the best arm is larger almost surely, so no integrand has anything left.
    lowest = -_REACH * errors[gaps.argmax()]
    ends = np.unique(np.concatenate([*wanted, [lowest]]))
    return np.asarray(ends[ends >= lowest], dtype=np.float64)


def _arm_ends(gap: float, error: float) -> FloatArray:
    if error == 0:
        return np.array([gap])
    step = 2.0 ** np.floor(np.log2(error))
    first, last = np.floor((gap - _REACH * error) / step), np.ceil((gap + _REACH * error) / step)
    ends: FloatArray = (first + np.arange(last - first + 1)) * step
    return ends


def _log_pdf(distance: FloatArray, errors: FloatArray) -> FloatArray:
    z = _standardised(distance, errors)
    known = errors == 0
    log_error = np.log(np.where(known, 1.0, errors))
    return np.where(known, -np.inf, -0.5 * z * z - log_error - _HALF_LOG_TAU)


def _standardised(distance: FloatArray, errors: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        z = distance / np.where(errors == 0, 1.0, errors)
    return np.clip(z, -1e100, 1e100)
