"""Integrals over the real line of products of Gaussian distribution functions.

This is a composite Gauss-Legendre rule. Where the distribution function of an arm is not constant, panels
are at most as wide as the arm's standard error, so narrow and wide arms are resolved equally well. Panel ends
are multiples of powers of two, so arms of similar spread share panels, however many arms there are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from ebql.estimators.arrays import FloatArray, IntArray

# Beyond 38 standard errors the Gaussian density underflows, and the distribution function is 0 or 1.
_REACH = 38.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Finite, so that sums and differences stay comparable; its exp() is 0.
_LOG_ZERO = -1e300
_HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)


class Line(NamedTuple):
    """Quadrature nodes and weights, and the distributions of m independent Gaussians at the nodes.

    `x` and `weight` are (nodes,), `log_cdf` and `log_pdf` are (m, nodes); x is relative to the largest mean.
    If the mean of an arm is known exactly (standard error 0), its cdf is a step and it has no density.
    """

    x: FloatArray
    weight: FloatArray
    log_cdf: FloatArray
    log_pdf: FloatArray

    def winning_density(self, count: IntArray | None = None) -> FloatArray:
        """Return f_a(x) Π_{j≠a} F_j(x), (m, nodes): the density of "arm a is largest and has the value x".

        `count` (m,) is the number of arms that each row stands for, by default one.
        """
        log_largest = self.log_cdf.sum(axis=0) if count is None else count @ self.log_cdf
        density: FloatArray = np.exp(self.log_pdf - self.log_cdf + log_largest)
        return density


def exactly_known(gaps: FloatArray, errors: FloatArray) -> NDArray[np.bool]:
    """Return which arms have a standard error of 0, or one below the resolution of floats at their mean."""
    limits = np.finfo(np.float64)
    known: NDArray[np.bool] = errors <= np.maximum(limits.eps * np.abs(gaps), limits.tiny)
    return known


def log_cdf(distance: FloatArray, errors: FloatArray) -> FloatArray:
    """Return log F at `distance` (m, ...) from each arm's mean; `errors` broadcasts with it."""
    step = np.where(distance >= 0, 0.0, _LOG_ZERO)
    return np.where(errors == 0, step, log_ndtr(_standardised(distance, errors)))


def gaussian_line(gaps: FloatArray, errors: FloatArray) -> Line:
    """Return the nodes for arms with means `gaps` (m,), the largest of them 0, and standard `errors` (m,)."""
    errors = np.where(exactly_known(gaps, errors), 0.0, errors)
    ends = _panel_ends(gaps, errors)
    half_width = np.diff(ends) / 2
    from_left = half_width[:, None] * (1 + _NODES)
    # Near the mean, "left end minus mean" is exact, while x itself may be rounded too coarsely.
    distance = ((ends[:-1] - gaps[:, None])[..., None] + from_left).reshape(gaps.size, -1)
    x = (ends[:-1, None] + from_left).ravel()
    weight = (half_width[:, None] * _WEIGHTS).ravel()
    spread = errors[:, None]
    return Line(x, weight, log_cdf(distance, spread), _log_pdf(distance, spread))


def _panel_ends(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    arm_ends = [_arm_ends(gap, error) for gap, error in zip(gaps.tolist(), errors.tolist(), strict=True)]
    # Below this the best arm is almost surely larger, so all integrands vanish.
    lowest = -_REACH * errors[gaps.argmax()]
    ends = np.unique(np.concatenate([*arm_ends, [lowest]]))
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
