"""What the winner of a comparison is worth: the optimiser's curse, corrected on real samples."""

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
    """An estimate of the largest mean, its standard error and confidence interval, and how it tends to err.

    `bias` and `rmse` are what the theory of Gaussian arms expects of this kind of estimate on such arms.
    """

    estimate: float
    standard_error: float
    low: float
    high: float
    bias: float
    rmse: float


@dataclass(frozen=True, slots=True, eq=False)
class Winner:
    """The arm `index` with the largest sample mean, and what the largest mean is estimated to be.

    `naive` is that arm's own mean, `double` and `corrected` are ensembles of 2 and of `ensemble_size`.
    `votes` (m,) is the share of the corrected estimate's selectors that picked each arm.
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
    """Estimate the largest mean of arms observed through `samples`, one array of any length per arm.

    All theory is that of Gaussian arms with the sample standard deviations and with the sample means drawn
    together by as much as noise spreads them apart: taken as they are, sample means look further apart
    than the true ones, and the naive estimate better than it is. The ensemble size is the best by it. As
    the samples choose it, the corrected estimate is a little high where arms are alike.

    The ensembles average `splits` random splits in which every member selects once, so they do not hinge
    on one arbitrary split. Their standard error and `rmse` are those of a single split: averaging can only
    lower them. The intervals know of no bias: not of the picking that flatters the naive estimate, nor of
    the wrong picks that make an ensemble lean low where the gaps are moderate.
    """
    rng = generator(rng)
    arms = [real_numbers(f"samples of arm {a}", arm).ravel() for a, arm in enumerate(samples)]
    counts = np.array([arm.size for arm in arms])
    if counts.size == 0 or counts.min() < 2:
        raise InputError("Every arm needs at least 2 samples, to know its spread.")
    splits = int(whole_numbers("splits", splits, 1))
    means, stds = np.array([(arm.mean(), arm.std(ddof=1)) for arm in arms]).T
    errors = stds / np.sqrt(counts)
    likely_means = _drawn_together(means, errors)
    z = two_sided_quantile(confidence)

    def averaged(ensemble_size: int) -> tuple[Value, FloatArray]:
        runs = [ensemble(arms, ensemble_size, rng, rotate=True) for _ in range(splits)]
        moments = ensemble_moments(likely_means, stds, counts, ensemble_size)
        picks = np.bincount(np.concatenate([run.index for run in runs]), minlength=counts.size)
        estimate = float(np.mean([run.value for run in runs]))
        return _value(estimate, float(moments.variance) ** 0.5, moments, z), picks / picks.sum()

    winner = single(arms)
    index = int(winner.index)
    naive = _value(float(winner.value), float(errors[index]), max_moments(likely_means, errors), z)
    ensemble_size = optimal_ensemble_size(likely_means, stds, counts)
    corrected, votes = averaged(ensemble_size)
    double = corrected if ensemble_size == 2 else averaged(2)[0]
    return Winner(index, naive, double, corrected, ensemble_size, votes)


def _drawn_together(means: FloatArray, errors: FloatArray) -> FloatArray:
    """Return `means` (m,) moved to their average until they vary as the true means are estimated to.

    Sample means vary by the true means' variance plus that of their `errors`; here only the first is left.
    """
    centre = means.mean()
    total = ((means - centre) ** 2).sum()
    noise = (errors**2).mean() * (means.size - 1)
    kept = float(1 - noise / total) ** 0.5 if total > noise else 0.0
    return np.asarray(centre + kept * (means - centre))


def _value(estimate: float, error: float, moments: Moments, z: float) -> Value:
    low, high = estimate - z * error, estimate + z * error
    return Value(estimate, error, low, high, float(moments.bias), float(moments.mse) ** 0.5)
