"""What the winner of a comparison is worth: the optimiser's curse, corrected on real samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ebql.errors import InputError
from ebql.estimators.arrays import FloatArray, real_numbers, two_sided_quantile, whole_numbers
from ebql.estimators.estimate import ensemble, single
from ebql.estimators.moments import ensemble_moments
from ebql.estimators.split import optimal_ensemble_size


class Value(NamedTuple):
    """An estimate of the largest mean with its standard error and confidence interval."""

    estimate: float
    standard_error: float
    low: float
    high: float


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

    The ensemble size is the best one for Gaussian arms with the sample means and standard deviations.
    The estimates average `splits` random splits in which every member selects once, so they do not hinge
    on one arbitrary split. Their standard error is that of a single split by the same plug-in theory:
    averaging can only lower it, so the interval is wide rather than narrow.
    """
    arms = [real_numbers(f"samples of arm {a}", arm).ravel() for a, arm in enumerate(samples)]
    counts = np.array([arm.size for arm in arms])
    if counts.size == 0 or counts.min() < 2:
        raise InputError("Every arm needs at least 2 samples, to know its spread.")
    splits = int(whole_numbers("splits", splits, 1))
    means, stds = np.array([(arm.mean(), arm.std(ddof=1)) for arm in arms]).T
    z = two_sided_quantile(confidence)

    def averaged(ensemble_size: int) -> tuple[Value, FloatArray]:
        runs = [ensemble(arms, ensemble_size, rng, rotate=True) for _ in range(splits)]
        variance = ensemble_moments(means, stds, counts, ensemble_size).variance
        picks = np.bincount(np.concatenate([run.index for run in runs]), minlength=counts.size)
        return _value(float(np.mean([run.value for run in runs])), float(variance), z), picks / picks.sum()

    winner = single(arms)
    index = int(winner.index)
    ensemble_size = optimal_ensemble_size(means, stds, counts)
    corrected, votes = averaged(ensemble_size)
    naive = _value(float(winner.value), float(stds[index] ** 2 / counts[index]), z)
    return Winner(index, naive, averaged(2)[0], corrected, ensemble_size, votes)


def _value(estimate: float, variance: float, z: float) -> Value:
    error = variance**0.5
    return Value(estimate, error, estimate - z * error, estimate + z * error)
