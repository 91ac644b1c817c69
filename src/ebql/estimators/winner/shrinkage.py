"""Empirical-Bayes shrinkage of several means: part of the lead of the best one is luck.

The model: true means are Gaussian with an unknown centre μ and variance τ², and sample means are Gaussian
around them with known standard errors. Few arms say little about τ², so the estimate averages over the
posterior of τ² instead of plugging in one value. All functions take arrays (..., m) of m arms.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ebql.estimators.arrays import FloatArray, IntArray
from ebql.estimators.winner.conditional import BoolArray, Ends

OUTLIER = 0.0005
"""The winner stands apart if the best of m arms of one Gaussian population is so far ahead of the others in
fewer than 1 of 2,000 tests. Where all arms are alike, a larger value would raise the RMSE by more than 2%."""
FEWEST_ARMS = 4
"""Arms that it takes to tell whether one of them stands apart from the others."""

_ALIKE = 0.15
"""The prior probability that all arms are alike, τ = 0."""
_HALVINGS = 60
# The logits of s² / (s² + τ²) at which the posterior of τ² is evaluated: from τ = 10⁻⁵ s to 10¹⁰ s.
_LOGITS = np.arange(-46.0, 23.0, 0.25)


class Posterior(NamedTuple):
    """The posterior of one arm's mean for each of G values of τ: (..., G) each; the `weights` sum to 1."""

    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    def mean(self) -> FloatArray:
        """Return the posterior mean, (...)."""
        return np.asarray((self.weights * self.means).sum(-1))

    def variance(self) -> FloatArray:
        """Return the posterior variance, (...): within τ and between."""
        deviations = self.means - self.mean()[..., None]
        return np.asarray((self.weights * (self.variances + deviations**2)).sum(-1))

    def interval(self, confidence: float) -> Ends:
        """Return the interval that has equal posterior tails."""
        return Ends(self._quantile((1 - confidence) / 2), self._quantile((1 + confidence) / 2))

    def _quantile(self, share: float) -> FloatArray:
        centre, reach = self.mean(), 40 * np.sqrt(self.variance())
        low, high = centre - reach, centre + reach
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            scores = (middle[..., None] - self.means) / np.sqrt(self.variances)
            below = (self.weights * ndtr(scores)).sum(-1) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)


def posterior(means: FloatArray, errors: FloatArray, index: IntArray) -> Posterior:
    """Return the posterior of the mean of arm `index` (...), with μ and τ² unknown.

    The prior of μ is flat. All arms are alike with probability `_ALIKE`; otherwise the shrinkage factor
    B = s² / (s² + τ²), where s² is the harmonic mean of the squared errors, has the density 1 / (2 √B). This
    prior is proper, so it works with two arms, which hardly say anything about τ².
    """
    typical = 1 / (1 / errors**2).mean(-1)
    factor = 1 / (1 + np.exp(-_LOGITS))
    spread = np.sqrt(factor) * (1 - factor)  # the density of B per logit
    prior = np.append((1 - _ALIKE) * spread / spread.sum(), _ALIKE)
    variances = typical[..., None] * np.append(np.exp(-_LOGITS), 0.0)  # τ² (..., G)
    totals = errors[..., None, :] ** 2 + variances[..., None]  # (..., G, m)
    precision = (1 / totals).sum(-1)
    centre = (means[..., None, :] / totals).sum(-1) / precision
    squares = ((means[..., None, :] - centre[..., None]) ** 2 / totals).sum(-1)
    logs = np.log(prior) - 0.5 * (np.log(totals).sum(-1) + np.log(precision) + squares)
    weights = np.exp(logs - logs.max(-1, keepdims=True))
    x, noise = (np.take_along_axis(a, index[..., None], -1) for a in (means, errors**2))
    towards_centre = noise / (noise + variances)
    return Posterior(
        weights / weights.sum(-1, keepdims=True),
        towards_centre * centre + (1 - towards_centre) * x,
        (1 - towards_centre) * noise + towards_centre**2 / precision,
    )


def stands_apart(means: FloatArray, errors: FloatArray, index: IntArray) -> BoolArray:
    """Return whether the arm `index` (...) lies further above the others than m arms of their kind allow."""
    arms = means.shape[-1]
    if arms < FEWEST_ARMS:
        return np.zeros(means.shape[:-1], dtype=bool)
    others = np.arange(arms) != index[..., None]
    count = arms - 1
    x, noise = (np.take_along_axis(a, index[..., None], -1)[..., 0] for a in (means, errors**2))
    centre = (means * others).sum(-1) / count
    spread = ((means - centre[..., None]) ** 2 * others).sum(-1) / (count - 1)
    typical = (errors**2 * others).sum(-1) / count
    beyond_noise = np.maximum(spread - typical, 0)  # τ² of the others
    score = (x - centre) / np.sqrt(noise + beyond_noise + (typical + beyond_noise) / count)
    return np.asarray(arms * ndtr(-score) < OUTLIER)
