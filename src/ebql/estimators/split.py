"""The best split: how many samples should pick the arm, and how many should measure it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ebql.estimators.arrays import FloatArray, IntArray, gaussian_arms, whole_numbers
from ebql.estimators.moments import ensemble_moments, exact_moments

_EXHAUSTIVE = 256


class Split(NamedTuple):
    """The split with the least mean squared error `mse`: `n_index` samples per arm select.

    `ensemble_size` is the size of the ensemble it stands for (proxy identity): N / n_index, rounded to
    whichever neighbour errs less, and at least 2.
    """

    n_index: int
    ensemble_size: int
    mse: float


def optimal_split(means: ArrayLike, stds: ArrayLike, n: int) -> Split:
    """Return the split of `n` samples per arm with the least mean squared error on Gaussian arms.

    `means` (m,), `stds` a scalar or (m,). Of equally good splits it is the one that selects with less.
    With equal stds fewer than half of the samples should select (Proposition 2 (3)). Unequal ones can ask
    for more: means (0.3, 0) and stds (0.1, 1) want 78 of 100, for a precise arm needs few to be measured.
    """
    means, stds = gaussian_arms(means, stds)
    n = int(whole_numbers("n", n, 2))
    n_index, mse = _least(lambda n_index: exact_moments(means, stds, n, n_index).mse, 1, n - 1)
    neighbours = np.unique(np.maximum([n // n_index, -(-n // n_index)], 2))
    ensemble_size = neighbours[ensemble_moments(means, stds, n, neighbours).mse.argmin()]
    return Split(n_index, int(ensemble_size), mse)


def optimal_ensemble_size(means: ArrayLike, stds: ArrayLike, n: ArrayLike) -> int:
    """Return the ensemble size K with the least mean squared error on Gaussian arms.

    `means` (m,), `stds` a scalar or (m,), `n` samples of every arm or (m,) counts; 2 <= K <= min(n).
    Exact up to some hundred samples; beyond, sizes that lie close together are not all tried.
    """
    means, stds = gaussian_arms(means, stds)
    n = whole_numbers("n", n, 2)
    sizes = _ensemble_sizes(int(n.min()))
    return int(sizes[ensemble_moments(means, stds, n, sizes).mse.argmin()])


def _ensemble_sizes(n: int) -> IntArray:
    if n <= _EXHAUSTIVE:
        return np.arange(2, n + 1)
    # Where the selector holds j samples, the most even blocks are those of K = ceil(n / j).
    selector = np.concatenate([np.arange(1, _EXHAUSTIVE), np.geomspace(_EXHAUSTIVE, n, _EXHAUSTIVE)])
    large = np.ceil(n / np.rint(selector)).astype(np.int64)
    return np.union1d(np.arange(2, _EXHAUSTIVE), large[large >= 2])


def _least(mse: Callable[[IntArray], FloatArray], low: int, high: int) -> tuple[int, float]:
    """Return where the vectorised `mse` is least among the integers from `low` to `high`, and its value.

    Nothing proves that the error of three arms or more has a single minimum. A long range is therefore
    sampled evenly both in ratio (each scale of gaps shows) and in steps (the far end too), and every dip
    of the samples is searched between its neighbours.
    """
    if high - low < _EXHAUSTIVE:
        return _narrowed(mse, low, high)
    ratios, steps = np.geomspace(low, high, _EXHAUSTIVE), np.linspace(low, high, _EXHAUSTIVE)
    candidates = np.unique(np.rint(np.concatenate([ratios, steps])).astype(np.int64))
    values = np.pad(mse(candidates), 1, constant_values=np.inf)
    dips = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] < values[2:]))
    ends = np.pad(candidates, 1, mode="edge")
    found = [_narrowed(mse, int(ends[dip]), int(ends[dip + 2])) for dip in dips]
    return min(found, key=lambda place: (place[1], place[0]))


def _narrowed(mse: Callable[[IntArray], FloatArray], low: int, high: int) -> tuple[int, float]:
    """Return the place and value of the one minimum between `low` and `high`."""
    while high - low >= _EXHAUSTIVE:
        candidates = np.rint(np.linspace(low, high, _EXHAUSTIVE // 4)).astype(np.int64)
        best = int(mse(candidates).argmin())
        low, high = int(candidates[max(best - 1, 0)]), int(candidates[min(best + 1, candidates.size - 1)])
    candidates = np.arange(low, high + 1)
    values = mse(candidates)
    best = int(values.argmin())
    return int(candidates[best]), float(values[best])
