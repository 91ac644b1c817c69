"""Means over seeds, and how sure we are of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A mean over seeds with the half-width of its confidence interval; arrays of one shape."""

    mean: Floats
    half_width: Floats


def over_seeds(values: Floats, confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean over the first axis, the seeds, with Student's interval.

    With a single seed the half-width is infinite: one run says nothing of the next.
    """
    n = len(values)
    mean: Floats = values.mean(0)
    if n < 2:
        return Estimate(mean, np.full_like(mean, np.inf))
    spread = values.std(0, ddof=1)
    return Estimate(mean, stdtrit(n - 1, 0.5 + confidence / 2) * spread / np.sqrt(n))
