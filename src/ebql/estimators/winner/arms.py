"""The arms of a test as a table of counts, means and standard deviations: all that the estimates need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ebql.errors import InputError
from ebql.estimators.arrays import FloatArray, IntArray, non_negative, real_numbers, whole_numbers


@dataclass(frozen=True, slots=True, eq=False)
class Arms:
    """m arms: their names, numbers of samples, sample means and sample standard deviations, (m,) each.

    >>> arms = Arms.from_successes([4_000, 4_000], [212, 251], ["A", "B"])
    >>> arms.means.tolist(), arms.errors().round(4).tolist()
    ([0.053, 0.06275], [0.0035, 0.0038])
    """

    names: tuple[str, ...]
    """What the arms are called."""
    counts: IntArray
    """The number of samples of each arm, (m,)."""
    means: FloatArray
    """The sample means, (m,)."""
    stds: FloatArray
    """The sample standard deviations, (m,)."""
    binary: bool = False
    """Whether every sample was 0 or 1, so that a mean is a rate."""
    skewness: float | None = None
    """The skewness of all samples, each in standard deviations from its arm's mean; None if unknown."""

    @classmethod
    def from_samples(cls, samples: Sequence[ArrayLike], names: Sequence[str] | None = None) -> "Arms":
        """Summarise `samples`, one array of any length per arm; arms without `names` are numbered from 1."""
        arrays = [real_numbers(f"samples of arm {i + 1}", arm).ravel() for i, arm in enumerate(samples)]
        labels = _labels(names, len(arrays))
        counts = np.array([array.size for array in arrays])
        for name, count in zip(labels, counts, strict=True):
            if count < 2:
                raise InputError(f"Arm {name!r} has {count} sample(s); every arm needs at least 2 samples.")
        binary = all(bool(np.isin(array, (0.0, 1.0)).all()) for array in arrays)
        if binary:
            return cls.from_successes(counts, [int(array.sum()) for array in arrays], labels)
        means, stds = np.array([(array.mean(), array.std(ddof=1)) for array in arrays]).T
        return replace(cls.from_moments(counts, means, stds, labels), skewness=_skewness(arrays))

    @classmethod
    def from_successes(
        cls, counts: ArrayLike, successes: ArrayLike, names: Sequence[str] | None = None
    ) -> "Arms":
        """Return arms of `counts` visitors each, of whom `successes` converted."""
        counts = whole_numbers("The number of samples", counts, 1)
        successes = whole_numbers("The number of successes", successes, 0)
        labels = _labels(names, counts.size)
        for name, count, success in zip(labels, counts, successes, strict=True):
            if success > count:
                raise InputError(f"Arm {name!r} has more successes ({success}) than samples ({count}).")
        rates = successes / counts
        return cls(labels, counts, rates, np.sqrt(rates * (1 - rates)), binary=True)

    @classmethod
    def from_moments(
        cls, counts: ArrayLike, means: ArrayLike, stds: ArrayLike, names: Sequence[str] | None = None
    ) -> "Arms":
        """Return arms of `counts` samples each, with these sample `means` and standard deviations `stds`."""
        counts = whole_numbers("The number of samples", counts, 2)
        stds = non_negative("stds", real_numbers("stds", stds))
        return cls(_labels(names, counts.size), counts, real_numbers("means", means), stds)

    def errors(self) -> FloatArray:
        """Return the standard errors of the means, (m,); none of them is 0.

        A rate of 0 or 1 is not known exactly, so rates count half a success and half a failure more. An arm
        whose samples are all alike gets a billionth of the other differences.
        """
        if self.binary:
            rates = (self.means * self.counts + 0.5) / (self.counts + 1)
            return np.asarray(np.sqrt(rates * (1 - rates) / self.counts))
        errors = self.stds / np.sqrt(self.counts)
        scale = max(errors.max(), np.ptp(self.means), 1e-9 * np.abs(self.means).max())
        return np.maximum(errors, 1e-9 * scale if scale > 0 else 1e-9)

    def index_of(self, name: str) -> int:
        """Return the position of the arm called `name`."""
        if name not in self.names:
            raise InputError(f"There is no arm {name!r}; the arms are {', '.join(self.names)}.")
        return self.names.index(name)


def _skewness(arrays: Sequence[FloatArray]) -> float:
    """Return the skewness of the samples of all arms, each centred and scaled by its own arm."""
    centred = [array - array.mean() for array in arrays if array.std() > 0]
    if not centred:
        return 0.0
    return float(np.mean(np.concatenate([(array / array.std()) ** 3 for array in centred])))


def _labels(names: Sequence[str] | None, arms: int) -> tuple[str, ...]:
    if arms < 2:
        raise InputError("A winner needs at least 2 arms to have won against.")
    labels = tuple(f"arm {i + 1}" for i in range(arms)) if names is None else tuple(names)
    if len(labels) != arms:
        raise InputError(f"Give one name per arm ({arms}), not {len(labels)}.")
    if len(set(labels)) < arms:
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"Two arms are called {twice!r}: every arm needs a name of its own.")
    return labels
