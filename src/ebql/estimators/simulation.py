"""Bias, variance and mean squared error of any estimator on any distribution, by Monte Carlo."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ebql.errors import InputError, InputTypeError
from ebql.estimators.arrays import (
    LARGEST,
    FloatArray,
    gaussian_arms,
    real_numbers,
    two_sided_quantile,
    whole_numbers,
)
from ebql.estimators.estimate import MaxEstimate

# Samples held in memory at once, 16 MB of floats, independent of the number of replications.
_SAMPLES_AT_ONCE = 2_000_000


class Sampler(Protocol):
    """Draws `batch` independent data sets with `n` samples per arm: `gaussian(…)`, or your own function.

    >>> from ebql.estimators import single
    >>> def dice(rng, batch, n):  # two dice, both worth 3.5
    ...     return rng.integers(1, 7, size=(batch, 2, n)).astype(float)
    >>> bool(simulate(dice, 10, single, max_mean=3.5, replications=1_000).bias.low > 0)  # too high
    True
    """

    def __call__(self, rng: np.random.Generator, batch: int, n: int, /) -> FloatArray:
        """Return samples of shape (batch, m, n)."""
        ...


class Interval(NamedTuple):
    """A Monte Carlo estimate and its confidence interval.

    >>> from ebql.estimators import double
    >>> bias = simulate(gaussian([0.0, 0.0], 1.0), 10, double, replications=2_000).bias
    >>> bool(bias.low < 0 < bias.high)  # arms of equal means: no bias
    True
    """

    value: float
    """The estimate."""
    low: float
    """The lower end of the interval."""
    high: float
    """The upper end."""


class Simulated(NamedTuple):
    """The error of an estimator over the replications of a simulation.

    >>> from ebql.estimators import single
    >>> error = simulate(gaussian([0.0, 0.0], 1.0), 10, single, replications=2_000)
    >>> round(error.bias.value, 1), round(error.variance.value, 2), round(error.mse.value, 1)
    (0.2, 0.07, 0.1)
    """

    bias: Interval
    """The mean error, in units of the samples."""
    variance: Interval
    """The variance of the estimates, in squared units."""
    mse: Interval
    """The mean squared error, in squared units."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A sampler of m independent Gaussian arms; `means` and `stds` have the shape (m,)."""

    means: FloatArray
    stds: FloatArray

    @property
    def max_mean(self) -> float:
        """The largest mean, which the estimators estimate."""
        return float(self.means.max())

    def __call__(self, rng: np.random.Generator, batch: int, n: int, /) -> FloatArray:
        """Return samples of shape (batch, m, n)."""
        samples = rng.standard_normal((batch, self.means.size, n))
        samples *= self.stds[:, None]
        samples += self.means[:, None]
        return samples


def gaussian(means: ArrayLike, stds: ArrayLike) -> Gaussian:
    """Return a sampler of independent Gaussian arms; `means` (m,), `stds` a scalar or (m,).

    >>> gaussian([0.0, 1.0], 1.0)(np.random.default_rng(0), 3, 10).shape  # (repetitions, arms, samples)
    (3, 2, 10)
    """
    return Gaussian(*gaussian_arms(means, stds))


def simulate(
    distribution: Sampler,
    n: int,
    estimator: Callable[[FloatArray], MaxEstimate],
    *,
    max_mean: float | None = None,
    replications: int = 100_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Simulated:
    """Measure the error of `estimator` on `replications` independent data sets of `n` samples per arm.

    `distribution` is a `Sampler`, such as `gaussian([0.0, 0.1], 1.0)` or your own function. `estimator` maps
    samples (batch, m, n) to a `MaxEstimate`, such as `lambda s: ensemble(s, 5)`. `max_mean` is the true
    largest mean; it is not needed if the distribution has an attribute of that name. Intervals with the given
    `confidence` follow from the central limit theorem.

    >>> from ebql.estimators import single
    >>> bias = simulate(gaussian([0.0, 0.0], 1.0), 10, single, replications=2_000).bias
    >>> bool(bias.low < 0.1784 < bias.high)  # the exact value
    True
    """
    n = int(whole_numbers("n", n, 1))
    replications = int(whole_numbers("replications", replications, 2))
    target = getattr(distribution, "max_mean", None) if max_mean is None else max_mean
    if target is None:
        raise InputError("The largest mean of this distribution is unknown: pass max_mean.")
    if not abs(target) <= LARGEST:
        raise InputError(f"max_mean must be a number of magnitude {LARGEST:g} or less, not {target}.")
    errors = _estimates(distribution, n, estimator, replications, np.random.default_rng(seed)) - target
    return error_intervals(errors, confidence)


def error_intervals(errors: FloatArray, confidence: float = 0.95) -> Simulated:
    """Return the intervals of bias, variance and MSE from independent errors (R,), estimate minus truth.

    >>> error_intervals(np.array([0.5, -0.5, 1.5, 0.5])).bias.value
    0.5
    """
    z = two_sided_quantile(confidence)
    bias = _interval(errors, z)
    return Simulated(bias, _interval((errors - bias.value) ** 2, z), _interval(errors**2, z))


def _estimates(
    sampler: Sampler,
    n: int,
    estimator: Callable[[FloatArray], MaxEstimate],
    replications: int,
    rng: np.random.Generator,
) -> FloatArray:
    values = np.empty(replications)
    arms = _draw(sampler, rng, 1, n).shape[1]
    batch = max(1, _SAMPLES_AT_ONCE // (arms * n))
    for start in range(0, replications, batch):
        chunk = values[start : start + batch]
        chunk[:] = estimator(_draw(sampler, rng, chunk.size, n)).value
    return real_numbers("estimates", values)


def _draw(sampler: Sampler, rng: np.random.Generator, batch: int, n: int) -> FloatArray:
    samples = real_numbers("samples drawn", sampler(rng, batch, n))
    if samples.ndim != 3 or (samples.shape[0], samples.shape[2]) != (batch, n):
        raise InputTypeError(f"The sampler must return the shape ({batch}, arms, {n}), not {samples.shape}.")
    return samples


def _interval(values: FloatArray, z: float) -> Interval:
    mean = float(values.mean())
    margin = z * float(values.std(ddof=1)) / values.size**0.5
    return Interval(mean, mean - margin, mean + margin)
