"""Estimators of the largest mean: some samples select an arm, other samples evaluate it.

The samples of each arm are split into consecutive blocks, one per ensemble member. Member 0, the selector,
selects the arm with the largest block mean. The other members, the evaluators, estimate the mean of that
arm. Their samples are independent of the selection, so they do not overestimate the selected arm.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ebql.errors import InputError
from ebql.estimators.arrays import FloatArray, IntArray, generator, real_numbers, whole_numbers
from ebql.estimators.members import apply_rule

# (..., m, N), or a list of m one-dimensional arrays of any lengths.
Samples: TypeAlias = ArrayLike | list[FloatArray] | list[list[float]]


@dataclass(frozen=True, slots=True, eq=False)
class MaxEstimate:
    """An estimate of the largest mean, and the selected arm.

    Without a batch, both are NumPy scalars.

    >>> batch = [[[1.0, 2.0], [0.0, 1.0]], [[0.0, 0.0], [3.0, 3.0]]]  # (2 data sets, 2 arms, 2 samples)
    >>> single(batch)
    MaxEstimate(value=array([1.5, 3. ]), index=array([0, 1]))
    """

    value: FloatArray
    """The estimates, in the batch shape (...) of the samples."""
    index: IntArray
    """The selected arms, (...); a rotated ensemble has one for each member, (..., K)."""


def single(samples: Samples) -> MaxEstimate:
    """Return the largest sample mean: select and evaluate with the same samples (biased upwards).

    `samples`: (..., m, N), or a list of m one-dimensional arrays of any lengths.

    >>> float(single([[1.0, 2.0], [0.0, 1.0]]).value)
    1.5
    """
    means = _member_means(_arms(samples), lambda _: np.zeros(1, dtype=np.int64))[..., 0]
    index = _best_arm(means, None)
    return MaxEstimate(_take(means, index), index)


def double(samples: Samples, rng: np.random.Generator | None = None) -> MaxEstimate:
    """Select with one half of the samples, evaluate with the other: an ensemble of two.

    >>> estimate = double([[3.0, 1.0], [0.0, 2.0]])  # 3 > 0 selects arm 0, whose other sample is 1
    >>> int(estimate.index), float(estimate.value)
    (0, 1.0)
    """
    return ensemble(samples, 2, rng)


def ensemble(
    samples: Samples, k: int, rng: np.random.Generator | None = None, *, rotate: bool = False
) -> MaxEstimate:
    """Select with one of `k` equal blocks, evaluate with the mean of the other k - 1.

    `samples`: (..., m, N), or a list of m one-dimensional arrays of any lengths. If k does not divide N, the
    first blocks have one sample more. Without `rng`, blocks follow the order of the samples, and ties go to
    the first arm. With `rng`, each arm is shuffled independently, and ties are broken at random. With
    `rotate`, every member selects once and the k estimates are averaged. This lowers the variance and, if k
    divides N, keeps the bias.

    >>> float(ensemble([[4.0, 1.0, 3.0], [0.0, 9.0, 9.0]], k=3).value)  # selects arm 0; the mean of 1 and 3
    2.0
    """
    members = _members(samples, int(whole_numbers("The ensemble size k", k, 2)), rng)
    return _every_member_selects(members, rng) if rotate else _first_member_selects(members, rng)


def weighted_double(samples: Samples, n_index: int, rng: np.random.Generator | None = None) -> MaxEstimate:
    """Select with the first `n_index` samples of each arm, evaluate with the rest.

    By the proxy identity (Proposition 1) this equals `ensemble(samples, k)` if n_index = N / k.
    `samples` and `rng` are as in `ensemble`; 1 <= n_index <= N - 1.

    >>> float(weighted_double([[4.0, 1.0, 3.0], [0.0, 9.0, 9.0]], n_index=1).value)
    2.0
    """
    arms = _shuffled(_arms(samples), rng)
    smallest = min(arm.shape[-1] for arm in arms)
    if smallest < 2:
        raise InputError("A split needs at least 2 samples of each arm; the smallest arm has 1.")
    n_index = int(whole_numbers("n_index", n_index, 1, smallest - 1))
    members = _member_means(arms, lambda _: np.array([0, n_index]))
    return _first_member_selects(members, rng)


def by_rule(
    samples: Samples,
    rule: str,
    k: int,
    parameter: float | None = None,
    rng: np.random.Generator | None = None,
) -> MaxEstimate:
    """Apply a rule of `MEMBER_RULES` to the means of `k` equal blocks of the samples, one per member.

    The value is that of an update of member 0. `index` is the arm with the largest mean over all members;
    a rule that averages over arms selects none. `samples` and `k` are as in `ensemble`; `rng` shuffles the
    samples before they are split, and ties go to the first arm. `parameter` is the rule's, by default its
    usual value.

    >>> float(by_rule([[1.0, 5.0], [3.0, 3.0]], "maxmin", k=2).value)  # minima 1 and 3
    3.0
    """
    members = np.swapaxes(_members(samples, int(whole_numbers("The ensemble size k", k, 1)), rng), -1, -2)
    index = np.asarray(members.mean(axis=-2).argmax(axis=-1), dtype=np.int64)[()]
    return MaxEstimate(apply_rule(rule, members, 0, parameter)[()], index)


def _members(samples: Samples, k: int, rng: np.random.Generator | None) -> FloatArray:
    """Return the means of `k` equal blocks of every arm's samples, (..., m, K)."""
    arms = _shuffled(_arms(samples), rng)
    smallest = min(arm.shape[-1] for arm in arms)
    if k > smallest:
        raise InputError(
            f"An ensemble of {k} needs at least {k} samples of each arm; the smallest arm has {smallest}."
        )
    return _member_means(arms, lambda n: _equal_blocks(n, k))


def _first_member_selects(members: FloatArray, rng: np.random.Generator | None) -> MaxEstimate:
    selector, evaluators = members[..., 0], members[..., 1:]
    index = _best_arm(selector, rng)
    return MaxEstimate(_take(evaluators.mean(axis=-1), index), index)


def _every_member_selects(members: FloatArray, rng: np.random.Generator | None) -> MaxEstimate:
    selectors = np.swapaxes(members, -1, -2)  # (..., K, m)
    index = _best_arm(selectors, rng)
    others = selectors.sum(axis=-2, keepdims=True) - selectors
    return MaxEstimate(_take(others / (members.shape[-1] - 1), index).mean(axis=-1), index)


def _best_arm(means: FloatArray, rng: np.random.Generator | None) -> IntArray:
    if rng is None:
        return np.asarray(means.argmax(axis=-1), dtype=np.int64)[()]
    # Means of a few counts or clicks often tie; always selecting the first arm would favour it.
    tied = means == means.max(axis=-1, keepdims=True)
    return np.asarray(np.where(tied, rng.random(means.shape), -1.0).argmax(axis=-1), dtype=np.int64)[()]


def _take(values: FloatArray, index: IntArray) -> FloatArray:
    """Return the entries (...) of `values` (..., m) at `index` (...)."""
    taken: FloatArray = np.take_along_axis(values, np.expand_dims(index, -1), axis=-1)
    return taken[..., 0][()]


def _member_means(arms: list[FloatArray], starts: Callable[[int], IntArray]) -> FloatArray:
    """Return the block means of every arm, (..., m, K); `starts(n)` gives the block starts of n samples."""
    return np.stack([_block_means(arm, starts(arm.shape[-1])) for arm in arms], axis=-2)


def _block_means(arm: FloatArray, starts: IntArray) -> FloatArray:
    sizes = np.diff(starts, append=arm.shape[-1])
    return np.asarray(np.add.reduceat(arm, starts, axis=-1) / sizes)


def _equal_blocks(n: int, k: int) -> IntArray:
    """Return the starts of k blocks of n samples; if k does not divide n, the first have one more."""
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
        raise InputError("Samples must have the shape (..., arms, N), or be a list with one array per arm.")
    for a, arm in enumerate(arms):
        if arm.shape[-1] == 0:
            raise InputError(f"Arm {a} is empty: every arm needs at least one sample.")
    return arms


def _listed_arms(samples: Sequence[ArrayLike]) -> list[FloatArray] | None:
    """Return the arms of a list of one-dimensional arrays of any lengths; None for nested batches."""
    arms = [real_numbers(f"samples of arm {a}", arm) for a, arm in enumerate(samples)]
    return arms if all(arm.ndim == 1 for arm in arms) else None
