"""What callers hand in, checked and turned into arrays of numbers."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ebql.errors import InputError, InputTypeError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


# The errors' fourth powers are summed (the interval of a simulated MSE): beyond, those sums overflow.
LARGEST = 1e70


def real_numbers(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as finite floats, or refuse them in one line that calls them `name`."""
    _refuse_masks(f"The {name}", values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputTypeError(f"The {name} must form a rectangular array of numbers.") from error
    if array.size and array.dtype.kind not in "biuf":
        raise InputTypeError(f"The {name} must be real numbers, not {array.dtype}.")
    with np.errstate(over="ignore"):  # of numbers wider than a float64, which become infinite
        array = array.astype(np.float64, copy=False)
    largest = max(array.max(), -array.min()) if array.size else 0.0
    if not np.isfinite(largest):
        raise InputError(f"The {name} contain NaN or infinity: drop or repair those values first.")
    if largest > LARGEST:
        raise InputError(f"The {name} reach {largest:g} in size: rescale them to {LARGEST:g} or less.")
    return array


def whole_numbers(name: str, values: ArrayLike, low: int, high: int | None = None) -> IntArray:
    """Return `values` as integers from `low` to `high`, both included; `high` None is no upper limit."""
    _refuse_masks(name, values)
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must be a whole number, not {_shown(values)}.")
    if array.size and (array.min() < low or (high is not None and array.max() > high)):
        limits = f"at least {low}" if high is None else f"between {low} and {high}"
        raise InputError(f"{name} must be {limits}, not {_shown(values)}.")
    return array.astype(np.int64, copy=False)


def gaussian_arms(means: ArrayLike, stds: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations of the m arms, both of shape (m,); one std serves all arms."""
    means = real_numbers("means", means)
    stds = real_numbers("stds", stds)
    if means.ndim != 1 or means.size == 0:
        raise InputError("The means must be one number per arm, at least one arm.")
    if stds.ndim > 1 or stds.size not in (1, means.size):
        raise InputError(f"Give one std for all arms or one per arm ({means.size}), not {stds.size}.")
    return means, np.broadcast_to(non_negative("stds", stds), means.shape)


def non_negative(name: str, values: FloatArray) -> FloatArray:
    """Return `values` unless one of them is below zero."""
    if (values < 0).any():
        raise InputError(f"The {name} must not be negative: one is {values.min():g}.")
    return values


def estimated_arms(means: ArrayLike, errors: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the means of m arms and the standard errors of their estimates, broadcast to (..., m)."""
    means = real_numbers("means", means)
    errors = non_negative("errors", real_numbers("errors", errors))
    try:
        means, errors = np.broadcast_arrays(means, errors)
    except ValueError as error:
        raise InputError(f"Means {means.shape} and errors {errors.shape} do not fit together.") from error
    if means.ndim == 0 or means.shape[-1] == 0:
        raise InputError("The last axis of the means is one number per arm, at least one arm.")
    return means, errors


def two_sided_quantile(confidence: float) -> float:
    """Return how many standard errors a normal interval of this `confidence` reaches to each side."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}.")
    return float(ndtri(0.5 + confidence / 2))


def generator(rng: object) -> np.random.Generator:
    """Return `rng` if it is NumPy's Generator: seeds, and the older RandomState, are refused."""
    if not isinstance(rng, np.random.Generator):
        raise InputTypeError(f"rng must be a numpy.random.Generator, not {type(rng).__name__}.")
    return rng


def _refuse_masks(name: str, values: object) -> None:
    """Refuse masked arrays, also inside lists: as plain arrays they would bring the masked values back."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputTypeError(f"{name} must not be a masked array: pass the unmasked values (.compressed()).")
    if isinstance(values, list | tuple):
        for value in values:
            if isinstance(value, list | tuple | np.ma.MaskedArray):
                _refuse_masks(name, value)


def _shown(values: object) -> str:
    return np.array2string(np.asarray(values), threshold=6, edgeitems=2, separator=", ").replace("\n", "")
