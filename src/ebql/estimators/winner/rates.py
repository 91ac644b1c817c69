"""Shrinkage of rates: on a scale on which the noise of a rate does not depend on the rate.

The standard error of a rate grows with the rate up to 50%, so the arm with the highest rate would count as
the noisiest one, and would be shrunk too much. The angle arcsin √rate has the standard error 1 / (2 √n)
whatever the rate is. The posterior is computed for angles; its moments as rates have closed forms.
"""

from typing import NamedTuple

import numpy as np

from ebql.estimators.arrays import FloatArray, IntArray
from ebql.estimators.winner.conditional import Ends
from ebql.estimators.winner.shrinkage import Posterior


class Angles(NamedTuple):
    """The angles arcsin √rate of some arms, and their standard errors, (..., m) each."""

    means: FloatArray
    errors: FloatArray


def angles(counts: IntArray | float, rates: FloatArray) -> Angles:
    """Return the angles of `rates` (..., m) of `counts` trials, with Anscombe's (1948) corrections."""
    counts = np.asarray(counts, dtype=np.float64)
    shares = (counts * rates + 0.375) / (counts + 0.75)
    errors = np.broadcast_to(0.5 / np.sqrt(counts + 0.5), shares.shape)
    return Angles(np.arcsin(np.sqrt(shares)), errors)


class RatePosterior(NamedTuple):
    """The posterior of a rate, given that of its angle φ: rate = sin² φ."""

    of_angle: Posterior

    def mean(self) -> FloatArray:
        """Return the posterior mean of the rate, (...): sin² φ = (1 - cos 2φ) / 2."""
        return np.asarray((1 - self._cosine(2)) / 2)

    def variance(self) -> FloatArray:
        """Return the posterior variance of the rate, (...): sin⁴ φ = (3 - 4 cos 2φ + cos 4φ) / 8."""
        fourth = (3 - 4 * self._cosine(2) + self._cosine(4)) / 8
        return np.asarray(np.maximum(fourth - self.mean() ** 2, 0.0))

    def interval(self, confidence: float) -> Ends:
        """Return the interval that has equal posterior tails."""
        low, high = (np.sin(np.clip(end, 0, np.pi / 2)) ** 2 for end in self.of_angle.interval(confidence))
        return Ends(np.asarray(low), np.asarray(high))

    def _cosine(self, factor: int) -> FloatArray:
        """Return the expectation of cos(factor φ), (...): φ is a mixture of Gaussians."""
        weights, means, variances = self.of_angle
        waves = np.exp(-(factor**2) * variances / 2) * np.cos(factor * means)
        return np.asarray((weights * waves).sum(-1))
