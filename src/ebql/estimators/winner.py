"""Estimate the mean of the best arm from samples, corrected for the optimiser's curse."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ebql.errors import InputError
from ebql.estimators.arrays import FloatArray, generator, real_numbers, two_sided_quantile, whole_numbers
from ebql.estimators.estimate import ensemble, single
from ebql.estimators.moments import Moments, ensemble_moments, max_moments
from ebql.estimators.split import optimal_ensemble_size


class Value(NamedTuple):
    """An estimate of the largest mean, its standard error and confidence interval, and its expected error.

    `bias` and `rmse` are the expected errors of this estimator on Gaussian arms like these.
    """

    estimate: float
    standard_error: float
    low: float
    high: float
    bias: float
    rmse: float


@dataclass(frozen=True, slots=True, eq=False)
class Winner:
    """The arm `index` with the largest sample mean, and three estimates of the largest mean.

    `naive` is the sample mean of that arm; `double` and `corrected` use ensembles of 2 and of
    `ensemble_size`. `votes` (m,) is the share of selectors of the corrected estimate that selected each
    arm.
    """

    index: int
    naive: Value
    double: Value
    corrected: Value
    ensemble_size: int
    votes: FloatArray


def correct_winner(
    samples: Sequence[ArrayLike], rng: np.random.Generator, *, splits: int = 100, confidence: float = 0.95
) -> Winner:
    """Estimate the largest mean of several arms from `samples`, one array of any length per arm.

    The ensemble size and the expected errors assume Gaussian arms with the sample standard deviations and
    with shrunken sample means. Sample means vary more than true means, so without shrinkage the naive
    estimate would look better than it is. Because the ensemble size depends on the samples, the corrected
    estimate is slightly too high if all arms are alike.

    The ensembles average over `splits` random splits in which every member selects once, so they do not
    depend on one arbitrary split. Their standard error and `rmse` are those of a single split; averaging
    can only lower them. The intervals ignore bias: selection biases the naive estimate upwards, and wrong
    selections bias an ensemble downwards if gaps are moderate.
    """
    rng = generator(rng)
    arms = [real_numbers(f"samples of arm {a}", arm).ravel() for a, arm in enumerate(samples)]
    counts = np.array([arm.size for arm in arms])
    if counts.size == 0 or counts.min() < 2:
        raise InputError("Every arm needs at least 2 samples for its standard deviation.")
    splits = int(whole_numbers("splits", splits, 1))
    means, stds = np.array([(arm.mean(), arm.std(ddof=1)) for arm in arms]).T
    errors = stds / np.sqrt(counts)
    shrunken_means = _shrunken(means, errors)
    z = two_sided_quantile(confidence)

    def averaged(ensemble_size: int) -> tuple[Value, FloatArray]:
        runs = [ensemble(arms, ensemble_size, rng, rotate=True) for _ in range(splits)]
        moments = ensemble_moments(shrunken_means, stds, counts, ensemble_size)
        selections = np.bincount(np.concatenate([run.index for run in runs]), minlength=counts.size)
        estimate = float(np.mean([run.value for run in runs]))
        return _value(estimate, float(moments.variance) ** 0.5, moments, z), selections / selections.sum()

    winner = single(arms)
    index = int(winner.index)
    naive = _value(float(winner.value), float(errors[index]), max_moments(shrunken_means, errors), z)
    ensemble_size = optimal_ensemble_size(shrunken_means, stds, counts)
    corrected, votes = averaged(ensemble_size)
    double = corrected if ensemble_size == 2 else averaged(2)[0]
    return Winner(index, naive, double, corrected, ensemble_size, votes)


def _shrunken(means: FloatArray, errors: FloatArray) -> FloatArray:
    """Return `means` (m,) shrunken towards their average until their variance is that of the true means.

    The variance of sample means is that of the true means plus that of their `errors`.
    """
    centre = means.mean()
    total = ((means - centre) ** 2).sum()
    noise = (errors**2).mean() * (means.size - 1)
    factor = float(1 - noise / total) ** 0.5 if total > noise else 0.0
    return np.asarray(centre + factor * (means - centre))


def _value(estimate: float, error: float, moments: Moments, z: float) -> Value:
    low, high = estimate - z * error, estimate + z * error
    return Value(estimate, error, low, high, float(moments.bias), float(moments.mse) ** 0.5)
