"""The optimal split: how many samples should select the arm, and how many should evaluate it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ebql.estimators.arrays import FloatArray, IntArray, gaussian_arms, whole_numbers
from ebql.estimators.moments import ensemble_moments, exact_moments

_EXHAUSTIVE = 256


class Split(NamedTuple):
    """The split with the least mean squared error.

    >>> best = optimal_split([1.0, 0.0], 1.0, n=20)
    >>> best.n_index, best.ensemble_size, round(best.mse, 4)
    (8, 3, 0.1061)
    """

    n_index: int
    """The number of samples of each arm that select; the others evaluate."""
    ensemble_size: int
    """The size of the corresponding ensemble (proxy identity): N / n_index, rounded up or down to the size
    with the smaller error, and at least 2."""
    mse: float
    """The mean squared error, in squared units of the samples."""


def optimal_split(means: ArrayLike, stds: ArrayLike, n: int) -> Split:
    """Return the split of `n` samples per arm with the least mean squared error on Gaussian arms.

    `means` (m,), `stds` a scalar or (m,). Of several best splits, it returns the one with fewest selecting
    samples. With equal stds, fewer than half of the samples should select (Proposition 2 (3)). With unequal
    stds it can be more: 78 of 100 for means (0.3, 0) and stds (0.1, 1), because few samples are enough to
    evaluate a precise arm.

    >>> optimal_split([1.0, 0.0], 1.0, n=20).n_index
    8
    """
    means, stds = gaussian_arms(means, stds)
    n = int(whole_numbers("n", n, 2))
    n_index, mse = _least(lambda n_index: exact_moments(means, stds, n, n_index).mse, 1, n - 1)
    neighbours = np.unique(np.maximum([n // n_index, -(-n // n_index)], 2))
    ensemble_size = neighbours[ensemble_moments(means, stds, n, neighbours).mse.argmin()]
    return Split(n_index, int(ensemble_size), mse)


def optimal_ensemble_size(means: ArrayLike, stds: ArrayLike, n: ArrayLike) -> int:
    """Return the ensemble size K with the least mean squared error on Gaussian arms.

    `means` (m,), `stds` a scalar or (m,), `n` samples of every arm or (m,) counts; 2 <= K <= min(n). The
    search is exhaustive up to 256 samples; beyond that it skips some of the large sizes.

    >>> optimal_ensemble_size([1.0, 0.0], 1.0, n=20)
    3
    """
    means, stds = gaussian_arms(means, stds)
    n = whole_numbers("n", n, 2)
    sizes = _ensemble_sizes(int(n.min()))
    return int(sizes[ensemble_moments(means, stds, n, sizes).mse.argmin()])


def _ensemble_sizes(n: int) -> IntArray:
    if n <= _EXHAUSTIVE:
        return np.arange(2, n + 1)
    # If the selector has j samples, K = ceil(n / j) gives the most even blocks.
    selector = np.concatenate([np.arange(1, _EXHAUSTIVE), np.geomspace(_EXHAUSTIVE, n, _EXHAUSTIVE)])
    large = np.ceil(n / np.rint(selector)).astype(np.int64)
    return np.union1d(np.arange(2, _EXHAUSTIVE), large[large >= 2])


def _least(mse: Callable[[IntArray], FloatArray], low: int, high: int) -> tuple[int, float]:
    """Return the integer from `low` to `high` that minimises the vectorised `mse`, and the minimum.

    With three or more arms, there may be several local minima. A long range is therefore sampled on a
    geometric grid (for gaps of different scales) and on a linear grid (for the far end), and every local
    minimum of the samples is refined between its neighbours.
    """
    if high - low < _EXHAUSTIVE:
        return _refined(mse, low, high)
    ratios, steps = np.geomspace(low, high, _EXHAUSTIVE), np.linspace(low, high, _EXHAUSTIVE)
    candidates = np.unique(np.rint(np.concatenate([ratios, steps])).astype(np.int64))
    values = np.pad(mse(candidates), 1, constant_values=np.inf)
    dips = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] < values[2:]))
    ends = np.pad(candidates, 1, mode="edge")
    minima = [_refined(mse, int(ends[dip]), int(ends[dip + 2])) for dip in dips]
    return min(minima, key=lambda minimum: (minimum[1], minimum[0]))


def _refined(mse: Callable[[IntArray], FloatArray], low: int, high: int) -> tuple[int, float]:
    """Return the position and the value of the single minimum between `low` and `high`."""
    while high - low >= _EXHAUSTIVE:
        candidates = np.rint(np.linspace(low, high, _EXHAUSTIVE // 4)).astype(np.int64)
        best = int(mse(candidates).argmin())
        low, high = int(candidates[max(best - 1, 0)]), int(candidates[min(best + 1, candidates.size - 1)])
    candidates = np.arange(low, high + 1)
    values = mse(candidates)
    best = int(values.argmin())
    return int(candidates[best]), float(values[best])
