"""The estimators of the largest mean: one set of samples picks the arm, others measure it.

The samples of each arm are cut into consecutive blocks, one per ensemble member. Member 0, the
selector, picks the arm whose block mean is largest; the other members, the evaluators, say what the
arm is worth. Because the evaluators never saw why the arm was picked, they do not flatter it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ebql.errors import InputError
from ebql.estimators.arrays import FloatArray, IntArray, generator, real_numbers, whole_numbers

# (..., m, N), or a list of m one-dimensional arrays of any lengths.
Samples: TypeAlias = ArrayLike | list[FloatArray] | list[list[float]]


@dataclass(frozen=True, slots=True, eq=False)
class MaxEstimate:
    """An estimate of the largest mean, and the arm it was read from.

    `value` has the batch shape (...) of the samples, `index` too; a rotated ensemble has one index per
    member, (..., K). Unbatched samples give NumPy scalars.
    """

    value: FloatArray
    index: IntArray


def single(samples: Samples) -> MaxEstimate:
    """Return the largest sample mean: select and evaluate on the same data (biased upwards).

    `samples`: (..., m, N), or a list of m one-dimensional arrays of any lengths.
    """
    means = _member_means(_arms(samples), lambda _: np.zeros(1, dtype=np.int64))[..., 0]
    index = _best_arm(means, None)
    return MaxEstimate(_at(means, index), index)


def double(samples: Samples, rng: np.random.Generator | None = None) -> MaxEstimate:
    """Select on one half of the samples, evaluate on the other: an ensemble of two."""
    return ensemble(samples, 2, rng)


def ensemble(
    samples: Samples, k: int, rng: np.random.Generator | None = None, *, rotate: bool = False
) -> MaxEstimate:
    """Select with one of `k` equal blocks, evaluate with the mean of the other k - 1.

    `samples`: (..., m, N), or a list of m one-dimensional arrays of any lengths. Where k does not
    divide N the first blocks hold one sample more. Without `rng` the blocks are in the order given and
    a tie goes to the first arm; with it, each arm is shuffled on its own and ties are broken at random.
    With `rotate` every member selects once and the k estimates are averaged: same bias (where k divides
    N), less variance.
    """
    arms = _shuffled(_arms(samples), rng)
    smallest = min(arm.shape[-1] for arm in arms)
    k = int(whole_numbers("The ensemble size k", k, 2))
    if k > smallest:
        raise InputError(
            f"An ensemble of {k} needs {k} samples of each arm; the smallest arm has {smallest}."
        )
    members = _member_means(arms, lambda n: _equal_blocks(n, k))
    return _every_member_selects(members, rng) if rotate else _first_member_selects(members, rng)


def weighted_double(samples: Samples, n_index: int, rng: np.random.Generator | None = None) -> MaxEstimate:
    """Select on the first `n_index` samples of each arm, evaluate on the rest.

    The proxy identity (Proposition 1): equal to `ensemble(samples, k)` when n_index = N / k.
    `samples` and `rng` are as in `ensemble`; 1 <= n_index <= N - 1.
    """
    arms = _shuffled(_arms(samples), rng)
    smallest = min(arm.shape[-1] for arm in arms)
    if smallest < 2:
        raise InputError("A split needs at least 2 samples of each arm; the smallest arm has 1.")
    n_index = int(whole_numbers("n_index", n_index, 1, smallest - 1))
    members = _member_means(arms, lambda _: np.array([0, n_index]))
    return _first_member_selects(members, rng)


def _first_member_selects(members: FloatArray, rng: np.random.Generator | None) -> MaxEstimate:
    selector, evaluators = members[..., 0], members[..., 1:]
    index = _best_arm(selector, rng)
    return MaxEstimate(_at(evaluators.mean(axis=-1), index), index)


def _every_member_selects(members: FloatArray, rng: np.random.Generator | None) -> MaxEstimate:
    selectors = np.swapaxes(members, -1, -2)  # (..., K, m)
    index = _best_arm(selectors, rng)
    others = selectors.sum(axis=-2, keepdims=True) - selectors
    return MaxEstimate(_at(others / (members.shape[-1] - 1), index).mean(axis=-1), index)


def _best_arm(means: FloatArray, rng: np.random.Generator | None) -> IntArray:
    if rng is None:
        return np.asarray(means.argmax(axis=-1), dtype=np.int64)[()]
    # Few samples of counts or clicks tie often; always taking the first arm would favour it.
    tied = means == means.max(axis=-1, keepdims=True)
    return np.asarray(np.where(tied, rng.random(means.shape), -1.0).argmax(axis=-1), dtype=np.int64)[()]


def _at(values: FloatArray, index: IntArray) -> FloatArray:
    picked: FloatArray = np.take_along_axis(values, np.expand_dims(index, -1), axis=-1)
    return picked[..., 0][()]


def _member_means(arms: list[FloatArray], starts: Callable[[int], IntArray]) -> FloatArray:
    """Return the mean of every block of every arm, (..., m, K); `starts(n)` cuts n samples into blocks."""
    return np.stack([_block_means(arm, starts(arm.shape[-1])) for arm in arms], axis=-2)


def _block_means(arm: FloatArray, starts: IntArray) -> FloatArray:
    sizes = np.diff(starts, append=arm.shape[-1])
    return np.asarray(np.add.reduceat(arm, starts, axis=-1) / sizes)


def _equal_blocks(n: int, k: int) -> IntArray:
    size, larger = divmod(n, k)
    member = np.arange(k)
    return member * size + np.minimum(member, larger)


def _shuffled(arms: list[FloatArray], rng: np.random.Generator | None) -> list[FloatArray]:
    if rng is None:
        return arms
    rng = generator(rng)
    return [rng.permuted(arm, axis=-1) for arm in arms]


def _arms(samples: Samples) -> list[FloatArray]:
    """Return the m arms, each (..., N)."""
    arms = _listed_arms(samples) if isinstance(samples, list | tuple) else None
    if arms is None:
        array = real_numbers("samples", samples)
        arms = list(np.moveaxis(array, -2, 0)) if array.ndim >= 2 else []
    if not arms:
        raise InputError("Samples have the shape (..., arms, N), or are a list with one array per arm.")
    for a, arm in enumerate(arms):
        if arm.shape[-1] == 0:
            raise InputError(f"Arm {a} is empty: every arm needs samples.")
    return arms


def _listed_arms(samples: Sequence[ArrayLike]) -> list[FloatArray] | None:
    """Return a list's arms if each is one-dimensional, whatever their lengths; None for nested batches."""
    arms = [real_numbers(f"samples of arm {a}", arm) for a, arm in enumerate(samples)]
    return arms if all(arm.ndim == 1 for arm in arms) else None
