"""What the winner of an A/B/n test is worth: estimates of its mean, and their errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtrit

from ebql.estimators.arrays import FloatArray, generator, two_sided_quantile
from ebql.estimators.moments import max_moments
from ebql.estimators.winner.arms import Arms
from ebql.estimators.winner.conditional import (
    Ends,
    Scores,
    binomial_scores,
    conditional_interval,
    simultaneous_limit,
    student_scores,
)
from ebql.estimators.winner.rates import RatePosterior, angles
from ebql.estimators.winner.shrinkage import Posterior, posterior, stands_apart

ENSEMBLE_SIZE = 5


class Value(NamedTuple):
    """An estimate of the winner's mean, and the error that this very estimate is expected to have.

    Expectations are over the posterior of the winner's mean (`shrinkage.posterior`), given the data. All
    values are in units of the samples.

    >>> winner = winner_of(Arms.from_successes([4_000] * 3, [212, 229, 251]))
    >>> [f"{number:.2%}" for number in winner.naive]
    ['6.28%', '0.29%', '0.44%']
    """

    estimate: float
    """The estimated mean."""
    bias: float
    """By how much the estimate is probably too high."""
    rmse: float
    """The root of its expected squared error."""


class Range(NamedTuple):
    """An interval from `low` to `high`."""

    low: float
    high: float


class Lift(NamedTuple):
    """By how much the winner's mean exceeds the control's: the estimate, and the conditional interval."""

    estimate: float
    interval: Range


@dataclass(frozen=True, slots=True, eq=False)
class Winner:
    """The arm with the largest sample mean, and what it is worth: its true mean, in units of the samples.

    >>> winner = winner_of(Arms.from_successes([4_000] * 3, [212, 229, 251], ["A", "B", "C"]), control="A")
    >>> f"{winner.name}: {winner.estimate.estimate:.2%}, 95% from {winner.interval.low:.2%}"
    'C: 5.99%, 95% from 5.42%'
    """

    arms: Arms
    """All arms."""
    index: int
    """Which of them won."""
    confidence: float
    """The level of the intervals, such as 0.95."""
    naive: Value
    """The sample mean."""
    split: Value
    """The paper's double estimator: one half of the samples selects, the other evaluates."""
    ensemble: Value
    """The same with an ensemble of five members."""
    shrinkage: Value
    """The empirical-Bayes mean."""
    recommended: str
    """Which estimate to use: "shrinkage" or "naive"."""
    interval: Range
    """Valid whatever the means are, although the arm was picked."""
    shrinkage_interval: Range
    """Shorter, but it trusts that arms come from one Gaussian population."""
    naive_interval: Range
    """The usual interval, which ignores that the arm was picked."""
    stands_apart: bool
    """Whether the winner is so far ahead that the other arms say nothing about it."""
    control: int | None = None
    """The arm to compare with, if one was named."""
    lift: Lift | None = None
    """By how much the winner exceeds the control; None without a control, or if the control won."""

    @property
    def estimate(self) -> Value:
        """The recommended estimate."""
        return self.naive if self.recommended == "naive" else self.shrinkage

    @property
    def name(self) -> str:
        """The winner's name."""
        return self.arms.names[self.index]


def correct_winner(
    samples: Sequence[ArrayLike],
    rng: np.random.Generator | None = None,
    *,
    splits: int | None = None,
    confidence: float = 0.95,
) -> Winner:
    """Estimate what the winner is worth from `samples`, one array of any length per arm.

    Nothing is drawn at random any more: `rng` and `splits` have no effect, and older calls still work.

    >>> correct_winner([[1.0, 3.0, 2.0], [0.0, 1.0, 0.5]]).name
    'arm 1'
    """
    del splits
    if rng is not None:
        generator(rng)
    return winner_of(Arms.from_samples(samples), confidence=confidence)


def winner_of(arms: Arms, *, control: str | None = None, confidence: float = 0.95) -> Winner:
    """Estimate what the arm with the largest sample mean is worth; with a `control`, also its lift.

    Of equal sample means the first one wins. Shrinkage is recommended, unless the winner stands so far apart
    from the others that they say nothing about it.

    >>> winner = winner_of(Arms.from_successes([4_000] * 3, [212, 229, 251], ["A", "B", "C"]), control="A")
    >>> winner.name, f"{winner.naive.estimate:.2%}"
    ('C', '6.28%')
    >>> bool(0.05 < winner.estimate.estimate < winner.naive.estimate)  # part of its lead was luck
    True
    """
    two_sided_quantile(confidence)  # refuses what is no probability
    errors = arms.errors()
    index = int(arms.means.argmax())
    control_index = None if control is None else arms.index_of(control)
    x = float(arms.means[index])
    apart = bool(stands_apart(*_shrinkable(arms), np.array(index)))
    shrunken = _posterior(arms, index)
    belief = _alone(x, float(errors[index])) if apart else shrunken
    mean, variance = float(belief.mean()), float(belief.variance())

    def value(estimate: float) -> Value:
        bias = estimate - mean
        return Value(estimate, bias, (variance + bias**2) ** 0.5)

    lift = None
    if control_index is not None and control_index != index:
        others = _posterior(arms, control_index).mean()
        baseline = arms.means[control_index] if apart else others
        interval = _lift_interval(arms, errors, index, control_index, confidence)
        lift = Lift(mean - float(baseline), interval)
    return Winner(
        arms=arms,
        index=index,
        confidence=confidence,
        naive=value(x),
        split=value(averaged_splits(arms.means, errors, 2)),
        ensemble=value(averaged_splits(arms.means, errors, ENSEMBLE_SIZE)),
        shrinkage=value(float(shrunken.mean())),
        recommended="naive" if apart else "shrinkage",
        interval=_winner_interval(arms, errors, index, confidence),
        shrinkage_interval=_range(shrunken.interval(confidence), arms),
        naive_interval=_naive_interval(arms, errors, index, confidence),
        stands_apart=apart,
        control=control_index,
        lift=lift,
    )


def averaged_splits(means: FloatArray, errors: FloatArray, ensemble_size: int) -> float:
    """Return the ensemble estimate of the best arm's mean, averaged over all random splits.

    In a split, each of K members selects once with its K-th part of the samples, and the others evaluate. If
    means are Gaussian, a random K-th part has the mean x + u with u ~ N(0, (K - 1) s²), and the rest has the
    mean x - u / (K - 1). So the average over all splits is an integral over u, and no split is drawn.
    """
    rest = ensemble_size - 1
    selectors = max_moments(means, np.sqrt(rest) * errors)
    selected = float(selectors.selection @ means)  # E[x of the selected arm]
    largest = float(means.max() + selectors.bias)  # E[x + u of the selected arm]
    return selected - (largest - selected) / rest


def _winner_interval(arms: Arms, errors: FloatArray, index: int, confidence: float) -> Range:
    x, count = arms.means[index], arms.counts[index]
    runner_up = np.delete(arms.means, index).max()
    limit = simultaneous_limit(arms.means.size, confidence)
    if arms.binary:
        scores, bounds = binomial_scores(count), Ends(np.array(0.0), np.array(1.0))
    else:
        scores, bounds = _student(x, errors[index], count - 1, limit)
    return _range(conditional_interval(x, runner_up, scores, bounds, limit, confidence), arms)


def _naive_interval(arms: Arms, errors: FloatArray, index: int, confidence: float) -> Range:
    share = (1 - confidence) / 2
    reach = -(ndtri(share) if arms.binary else stdtrit(arms.counts[index] - 1, share)) * errors[index]
    return _range(Ends(arms.means[index] - reach, arms.means[index] + reach), arms)


def _lift_interval(arms: Arms, errors: FloatArray, index: int, control: int, confidence: float) -> Range:
    """Return the conditional interval of the winner's mean minus the control's.

    Given what is independent of the difference D, the winner wins if D > 0 and if its own part of D lifts it
    above each other arm: x = (x - w D) + w D, where w is its share of the variance of D.
    """
    noise = errors**2
    variance = noise[index] + noise[control]
    share = noise[index] / variance
    difference = arms.means[index] - arms.means[control]
    others = np.delete(arms.means, [index, control])
    least = difference - (arms.means[index] - others) / share
    runner_up = max(0.0, float(least.max(initial=-np.inf)))
    degrees = variance**2 / sum(noise[i] ** 2 / (arms.counts[i] - 1 or 1) for i in (index, control))
    limit = simultaneous_limit(arms.means.size - 1, confidence)
    scores, bounds = _student(difference, variance**0.5, degrees, limit)
    ends = conditional_interval(difference, np.array(runner_up), scores, bounds, limit, confidence)
    return Range(float(ends.low), float(ends.high))


def _student(x: FloatArray, error: FloatArray, degrees: FloatArray, limit: float) -> tuple[Scores, Ends]:
    """Return the scores of a mean with an estimated error, and bounds just beyond the limit."""
    reach = -1.01 * stdtrit(degrees, ndtr(-limit)) * error
    return student_scores(error, degrees), Ends(x - reach, x + reach)


def _shrinkable(arms: Arms) -> tuple[FloatArray, FloatArray]:
    """Return what is shrunk: the means and their standard errors, for rates those of their angles."""
    return angles(arms.counts, arms.means) if arms.binary else (arms.means, arms.errors())


def _posterior(arms: Arms, index: int) -> Posterior | RatePosterior:
    """Return the posterior of the mean of arm `index`, given all arms."""
    found = posterior(*_shrinkable(arms), np.array(index))
    return RatePosterior(found) if arms.binary else found


def _alone(x: float, error: float) -> Posterior:
    """Return the posterior of a mean of which the other arms tell nothing."""
    return Posterior(np.ones(1), np.array([x]), np.array([error**2]))


def _range(ends: Ends, arms: Arms) -> Range:
    """Return the interval of a mean; that of a rate ends at 0 and 1."""
    low, high = float(ends.low), float(ends.high)
    return Range(max(low, 0.0), min(high, 1.0)) if arms.binary else Range(low, high)
