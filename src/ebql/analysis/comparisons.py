"""Compare agents: probability of improvement, performance profiles, paired differences, correlations.

Scores are as in `ebql.analysis.statistics`: one array (seeds,) for each environment.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata

from ebql.analysis.statistics import (
    REPLICATES,
    Counts,
    Floats,
    Interval,
    Scores,
    checked,
    checked_pair,
    combination,
    estimate,
    intervals,
)
from ebql.errors import InputError
from ebql.estimators.intervals import CONFIDENCE, FEWEST_SEEDS

_CHUNK = 1 << 21  # permuted ranks in memory at a time


class Profile(NamedTuple):
    """The share of runs that score above each of T thresholds, with its interval; arrays (T,)."""

    thresholds: Floats
    share: Floats
    low: Floats
    high: Floats


class Correlation(NamedTuple):
    """Spearman's rank correlation within each environment, and its mean over environments."""

    within: list[float]
    """One for each environment; NaN if one of the two measurements does not vary there."""
    mean: float
    p_value: float
    """The share of permutations within environments whose mean is as far from 0; NaN if nothing varies."""
    low: float = np.nan
    """Lower end of the 95% interval of the mean; NaN with fewer than `FEWEST_SEEDS` runs somewhere."""
    high: float = np.nan


def probability_of_improvement(
    scores: Scores,
    others: Scores,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the probability that a run scores higher than the other agent's run in the same environment.

    It is the share of pairs of runs that the agent wins, ties counting half (Mann-Whitney's U over the number
    of pairs), averaged over environments.
    """
    mine, theirs = checked_pair(scores, others)
    n = len(mine)
    wins = [(np.sign(x[:, None] - y) + 1) / 2 for x, y in zip(mine, theirs, strict=True)]

    def statistic(_: Scores, counts: Sequence[Counts]) -> Floats:
        shares = [
            ((a @ win) * b).sum(1) / win.size for win, a, b in zip(wins, counts[:n], counts[n:], strict=True)
        ]
        result: Floats = np.mean(shares, axis=0)
        return result

    return estimate([*mine, *theirs], statistic, replicates=replicates, seed=seed, confidence=confidence)


def performance_profile(
    scores: Scores,
    thresholds: ArrayLike,
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Profile:
    """Return the share of runs that score above each threshold; every environment has the same weight."""
    taus = np.asarray(thresholds, np.float64)

    def statistic(own: Scores, counts: Sequence[Counts]) -> Floats:
        above = [(x[:, None] > taus).astype(np.float64) for x in own]
        shares = [c @ is_above / len(is_above) for is_above, c in zip(above, counts, strict=True)]
        result: Floats = np.mean(shares, axis=0)
        return result

    shares = intervals(scores, statistic, replicates=replicates, seed=seed, confidence=confidence)
    return Profile(taus, *np.array(shares).reshape(-1, 3).T)


def paired_difference(
    by_seed: Sequence[Mapping[int, float]],
    others: Sequence[Mapping[int, float]],
    *,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the mean difference between runs with the same seed, averaged over environments.

    Both arguments map seeds to scores, for each environment; seeds that only one agent has are left out.
    The interval is Student's, of the differences: the effect that a seed has on both agents cancels.
    """
    pairs = zip(by_seed, others, strict=True)
    differences = [
        np.array([mine[s] - theirs[s] for s in sorted(mine.keys() & theirs.keys())]) for mine, theirs in pairs
    ]
    if not all(len(own) for own in differences):
        raise InputError("Agents compared by seed must share at least one seed in every environment.")
    return combination(differences, [1 / len(differences)] * len(differences), confidence=confidence)


def rank_correlation(xs: Scores, ys: Scores, *, permutations: int = 5_000, seed: int = 0) -> Correlation:
    """Return the rank correlation of two measurements of the same runs, within environments.

    `xs` and `ys` hold an array (runs,) for each environment, with runs in the same order. The interval takes
    Bonett and Wright's variance of each coefficient (2000) and Fisher's scale for the mean. In simulations of
    normal values with 5 and 10 seeds, with and without differences between agents, nominal 95% intervals
    contain the true mean in 94 to 98% of studies.
    """
    ranks = [(_standardised(x), _standardised(y)) for x, y in zip(checked(xs), checked(ys), strict=True)]
    within = [float(x @ y) for x, y in ranks]
    varying = [(x, y) for x, y in ranks if np.isfinite(x @ y)]
    if not varying:
        return Correlation(within, np.nan, np.nan)
    rng = np.random.default_rng(seed)
    totals = np.zeros(permutations)
    for x, y in varying:
        rows = max(1, _CHUNK // len(x))
        for start in range(0, permutations, rows):
            chunk = totals[start : start + rows]
            chunk += rng.permuted(np.broadcast_to(y, (len(chunk), len(y))), axis=1) @ x
    average = float(np.nanmean(within))
    # The data count as one permutation, so the p-value is never 0. The tolerance keeps ties despite rounding.
    as_far = int(np.count_nonzero(np.abs(totals / len(varying)) >= abs(average) - 1e-12))
    ends = _interval(np.array([x @ y for x, y in varying]), np.array([len(x) for x, _ in varying]))
    return Correlation(within, average, (as_far + 1) / (permutations + 1), *ends)


def _interval(coefficients: Floats, runs: Counts) -> tuple[float, float]:
    """Return the 95% interval of the mean of rank correlations of so many runs; NaN if any has too few."""
    if runs.min() < FEWEST_SEEDS:
        return np.nan, np.nan
    most = 1 - 1 / runs  # a perfect order of few runs is not a certain one
    rho = np.clip(coefficients, -most, most)
    variance = (1 - rho**2) ** 2 * (1 + rho**2 / 2) / (runs - 3)
    mean = float(np.clip(coefficients.mean(), -most.max(), most.max()))
    half_width = ndtri(0.5 + CONFIDENCE / 2) * np.sqrt(variance.sum()) / len(rho) / (1 - mean**2)
    low, high = np.tanh(np.arctanh(mean) + half_width * np.array([-1, 1]))
    return float(low), float(high)


def _standardised(values: Floats) -> Floats:
    """Return ranks with mean 0 and norm 1, whose dot product is Spearman's coefficient; NaN if all tie."""
    ranks = rankdata(values)
    ranks -= ranks.mean()
    length = np.linalg.norm(ranks)
    return ranks / length if length > 0 else np.full_like(ranks, np.nan)
