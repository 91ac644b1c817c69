"""The mean over seeds with Student's confidence interval."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ebql.estimators.arrays import FloatArray

FEWEST_SEEDS = 5
"""The fewest seeds for which an interval or a probability of improvement is given.

With fewer seeds both mislead. If two agents are equally good, all runs of one beat all runs of the other in
33%, 10% and 3% of studies with 2, 3 and 4 seeds each, and a bootstrap then reports a probability of
1.00 [1.00, 1.00]; with 5 seeds that happens in 0.8%. Student's interval is honest, but with 2 seeds it is 13
standard errors wide on either side and says nothing.
"""
CONFIDENCE = 0.95


class MeanOverSeeds(NamedTuple):
    """A mean over seeds and the half-width of its confidence interval; arrays of one shape.

    The half-width is infinite with fewer than `FEWEST_SEEDS` seeds.
    """

    mean: FloatArray
    half_width: FloatArray


def over_seeds(values: FloatArray, confidence: float = CONFIDENCE) -> MeanOverSeeds:
    """Return the mean over the first axis, the seeds, with Student's interval.

    With fewer than `FEWEST_SEEDS` seeds the half-width is infinite.
    """
    n = len(values)
    mean: FloatArray = values.mean(0)
    if n < FEWEST_SEEDS:
        return MeanOverSeeds(mean, np.full_like(mean, np.inf))
    spread = values.std(0, ddof=1)
    return MeanOverSeeds(mean, stdtrit(n - 1, 0.5 + confidence / 2) * spread / np.sqrt(n))


def interval_ends(mean: float, half_width: float) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval for a table; None if the half-width is infinite."""
    return (mean - half_width, mean + half_width) if np.isfinite(half_width) else (None, None)
