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

# Samples held at once: 16 MB of floats, whatever the number of replications.
_SAMPLES_AT_ONCE = 2_000_000


class Sampler(Protocol):
    """Draws `batch` independent data sets of `n` samples per arm, an array (batch, m, n)."""

    def __call__(self, rng: np.random.Generator, batch: int, n: int, /) -> FloatArray:
        """Return samples of shape (batch, m, n)."""
        ...


class Interval(NamedTuple):
    """A Monte Carlo estimate and its confidence interval."""

    value: float
    low: float
    high: float


class Simulated(NamedTuple):
    """How an estimator erred over the replications of a simulation."""

    bias: Interval
    variance: Interval
    mse: Interval


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A sampler of m independent Gaussian arms; `means` and `stds` have the shape (m,)."""

    means: FloatArray
    stds: FloatArray

    @property
    def max_mean(self) -> float:
        """The number that the estimators try to estimate."""
        return float(self.means.max())

    def __call__(self, rng: np.random.Generator, batch: int, n: int, /) -> FloatArray:
        """Return samples of shape (batch, m, n)."""
        samples = rng.standard_normal((batch, self.means.size, n))
        samples *= self.stds[:, None]
        samples += self.means[:, None]
        return samples


def gaussian(means: ArrayLike, stds: ArrayLike) -> Gaussian:
    """Return a sampler of independent Gaussian arms; `means` (m,), `stds` a scalar or (m,)."""
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
    """Run `estimator` on `replications` fresh data sets of `n` samples per arm and measure its errors.

    `distribution` draws them: a `Sampler`, e.g. `gaussian([0.0, 0.1], 1.0)` or a function of your own.
    `estimator` maps samples (batch, m, n) to a `MaxEstimate`, e.g. `lambda s: ensemble(s, 5)`.
    `max_mean` is the true largest mean; a distribution with an attribute of that name needs none.
    Intervals are the central limit theorem's, at the given `confidence`.
    """
    n = int(whole_numbers("n", n, 1))
    replications = int(whole_numbers("replications", replications, 2))
    target = getattr(distribution, "max_mean", None) if max_mean is None else max_mean
    if target is None:
        raise InputError("This distribution does not know its largest mean: pass max_mean.")
    if not abs(target) <= LARGEST:
        raise InputError(f"max_mean must be a number of at most {LARGEST:g} in size, not {target}.")
    errors = _estimates(distribution, n, estimator, replications, np.random.default_rng(seed)) - target
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
        raise InputTypeError(f"A sampler returns ({batch}, arms, {n}) here, not {samples.shape}.")
    return samples


def _interval(values: FloatArray, z: float) -> Interval:
    mean = float(values.mean())
    margin = z * float(values.std(ddof=1)) / values.size**0.5
    return Interval(mean, mean - margin, mean + margin)
