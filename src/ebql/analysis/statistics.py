"""Aggregate scores over seeds and environments, with confidence intervals.

An agent's scores (`Scores`) are one array for each environment, with one score for each seed. Environments
may have different numbers of seeds; each environment has the same weight. With equal numbers of seeds, every
statistic equals that of the rliable library (Agarwal et al., "Deep Reinforcement Learning at the Edge of the
Statistical Precipice", 2021).

Intervals are percentiles of a stratified bootstrap: seeds are resampled within each environment. A replicate
is stored as counts, how often it drew each seed, so that all replicates form one matrix. Percentile intervals
of few seeds are too narrow: in simulations of five environments with normal scores, nominal 95% intervals
contain the true mean in 77%, 86%, 90% and 93% of studies with 2, 3, 5 and 10 seeds.
"""

from collections.abc import Callable, Iterator, Sequence
from math import lcm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ebql.errors import InputError, whole_number
from ebql.estimators.intervals import CONFIDENCE, FEWEST_SEEDS

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Scores = Sequence[Floats]
"""One agent's scores: an array (seeds,) for each environment."""
Statistic = Callable[[Scores, Sequence[Counts]], Floats]
"""A function of scores and of counts (R, seeds) for each environment; returns R values of any shape."""

REPLICATES = 5_000

_CHUNK = 1 << 21  # counts in memory at a time


class Interval(NamedTuple):
    """A statistic and its confidence interval.

    Low and high are NaN if there is none, as where an environment has fewer than `FEWEST_SEEDS` seeds.
    """

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return bool(np.isfinite(self.low))

    def excludes(self, number: float) -> bool:
        """Whether the interval is known and lies on one side of `number`."""
        return self.known and not self.low <= number <= self.high


def environment_means(scores: Scores, counts: Sequence[Counts]) -> Floats:
    """Return the mean score in each of E environments, (R, E)."""
    return np.stack([own @ x / len(x) for x, own in zip(scores, counts, strict=True)], 1)


def mean(scores: Scores, counts: Sequence[Counts]) -> Floats:
    """Return the mean of the environments' mean scores, (R,)."""
    result: Floats = environment_means(scores, counts).mean(1)
    return result


def median(scores: Scores, counts: Sequence[Counts]) -> Floats:
    """Return the median of the environments' mean scores, (R,)."""
    result: Floats = np.median(environment_means(scores, counts), axis=1)
    return result


def optimality_gap(scores: Scores, counts: Sequence[Counts]) -> Floats:
    """Return the mean shortfall of runs from a score of 1, (R,); scores above 1 count as 1."""
    return 1 - mean([np.minimum(x, 1.0) for x in scores], counts)


def iqm(scores: Scores, counts: Sequence[Counts]) -> Floats:
    """Return the interquartile mean, (R,): the mean of all runs without the lowest and the highest quarter.

    The weight of a run is one over the number of runs in its environment. From either end, whole runs are
    trimmed as long as their weights sum to at most a quarter. If all environments have the same number of
    runs, this is scipy's `trim_mean(x, 0.25)`.
    """
    sizes = [len(x) for x in scores]
    multiple = lcm(*sizes)  # whole weights, so that a quarter is exact
    weights = np.repeat([multiple // n for n in sizes], sizes)
    values, drawn = np.concatenate(scores), np.concatenate(counts, 1)
    order = np.lexsort((weights, values))
    values, weights, drawn = values[order], weights[order], drawn[:, order]
    total = len(sizes) * multiple
    up_to = (drawn * weights).cumsum(1)
    lowest = _whole_runs_within(total // 4, up_to - drawn * weights, weights, drawn)
    highest = _whole_runs_within(total // 4, total - up_to, weights, drawn)
    kept = (drawn - lowest - highest) * weights
    result: Floats = kept @ values / kept.sum(1)
    return result


def _whole_runs_within(quarter: int, outside: Counts, weights: Counts, drawn: Counts) -> Counts:
    """Return how many of the drawn copies of each run fit into the rest of a quarter, (R, N)."""
    fitting: Counts = np.clip((quarter - outside) // weights, 0, drawn)
    return fitting


def estimate(
    scores: Scores,
    statistic: Statistic = iqm,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return a statistic of one agent's scores with its bootstrap interval."""
    (result,) = intervals(scores, statistic, replicates=replicates, seed=seed, confidence=confidence)
    return result


def difference(
    scores: Scores,
    others: Scores,
    statistic: Statistic = iqm,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return a statistic of one agent minus that of another; their seeds are resampled independently."""
    mine, theirs = checked_pair(scores, others)
    n = len(mine)

    def minus(both: Scores, counts: Sequence[Counts]) -> Floats:
        return statistic(both[:n], counts[:n]) - statistic(both[n:], counts[n:])

    return estimate([*mine, *theirs], minus, replicates=replicates, seed=seed, confidence=confidence)


def intervals(
    scores: Scores,
    statistic: Statistic,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> list[Interval]:
    """Return each number of a statistic, flattened, with its bootstrap interval.

    The interval is unknown if any environment has fewer than `FEWEST_SEEDS` seeds.
    """
    scores = checked(scores)
    whole_number("replicates", replicates, 1)
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}.")
    values = statistic(scores, [np.ones((1, len(x)), np.int64) for x in scores]).reshape(-1)
    if min(map(len, scores)) < FEWEST_SEEDS:
        return [Interval(float(value), np.nan, np.nan) for value in values]
    drawn = [statistic(scores, counts) for counts in _resamples(scores, replicates, seed)]
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    low, high = np.quantile(np.concatenate(drawn).reshape(replicates, -1), tails, axis=0)
    return [Interval(*numbers) for numbers in zip(values.tolist(), low.tolist(), high.tolist(), strict=True)]


def combination(
    samples: Sequence[Floats], weights: Sequence[float], *, confidence: float = CONFIDENCE
) -> Interval:
    """Return a weighted sum of the means of independent samples with its t interval.

    The degrees of freedom are Welch's and Satterthwaite's. In simulations of five samples of 5 or 10 normal
    values with different spreads, nominal 95% intervals contain the truth in 95% of studies. Without an
    interval if a sample has fewer than `FEWEST_SEEDS` values.
    """
    samples = checked(samples)
    value = float(sum(weight * own.mean() for own, weight in zip(samples, weights, strict=True)))
    if min(map(len, samples)) < FEWEST_SEEDS:
        return Interval(value, np.nan, np.nan)
    sizes = np.array([len(own) for own in samples])
    parts = np.array(weights) ** 2 * np.array([own.var(ddof=1) for own in samples]) / sizes
    variance = parts.sum()
    if variance == 0:
        return Interval(value, value, value)
    freedom = variance**2 / (parts**2 / (sizes - 1)).sum()
    half_width = float(stdtrit(freedom, 0.5 + confidence / 2) * np.sqrt(variance))
    return Interval(value, value - half_width, value + half_width)


def checked(scores: Scores) -> list[Floats]:
    """Return scores as arrays of floats; refuse environments without scores or with infinite ones."""
    arrays = [np.asarray(x, np.float64) for x in scores]
    if not arrays:
        raise InputError("Give the scores of at least one environment.")
    for place, array in enumerate(arrays):
        if array.ndim != 1 or not array.size:
            raise InputError(
                f"Scores are one array for each environment, one score for each seed; environment {place} "
                f"has an array of shape {array.shape}."
            )
        if not np.isfinite(array).all():
            raise InputError(f"The scores of environment {place} are not all finite.")
    return arrays


def checked_pair(scores: Scores, others: Scores) -> tuple[list[Floats], list[Floats]]:
    """Return the checked scores of two agents; refuse different numbers of environments."""
    mine, theirs = checked(scores), checked(others)
    if len(mine) != len(theirs):
        raise InputError(
            f"Agents compared must share environments: one has {len(mine)}, the other {len(theirs)}."
        )
    return mine, theirs


def _resamples(scores: Scores, replicates: int, seed: int) -> Iterator[list[Counts]]:
    """Yield counts of drawn seeds, (R, seeds) for each environment, in chunks that fit into memory."""
    rng = np.random.default_rng(seed)
    sizes = [len(x) for x in scores]
    rows = max(1, _CHUNK // sum(sizes))
    for start in range(0, replicates, rows):
        yield [_drawn(rng, n, min(rows, replicates - start)) for n in sizes]


def _drawn(rng: np.random.Generator, n: int, rows: int) -> Counts:
    """Return how often each of n items occurs in n draws, (rows, n); much faster than a multinomial."""
    draws = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(draws.ravel(), minlength=rows * n).reshape(rows, n)
