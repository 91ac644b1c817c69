"""The mean over seeds with Student's confidence interval."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ebql.estimators.arrays import FloatArray

CONFIDENCE = 0.95


class MeanOverSeeds(NamedTuple):
    """A mean over seeds and the half-width of its confidence interval; arrays of one shape."""

    mean: FloatArray
    half_width: FloatArray


def over_seeds(values: FloatArray, confidence: float = CONFIDENCE) -> MeanOverSeeds:
    """Return the mean over the first axis, the seeds, with Student's interval.

    With a single seed the half-width is infinite.
    """
    n = len(values)
    mean: FloatArray = values.mean(0)
    if n < 2:
        return MeanOverSeeds(mean, np.full_like(mean, np.inf))
    spread = values.std(0, ddof=1)
    return MeanOverSeeds(mean, stdtrit(n - 1, 0.5 + confidence / 2) * spread / np.sqrt(n))


def interval_ends(mean: float, half_width: float) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval for a table; None if the half-width is infinite."""
    return (mean - half_width, mean + half_width) if np.isfinite(half_width) else (None, None)
