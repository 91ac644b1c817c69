"""What callers hand in, checked and turned into arrays of numbers."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ebql.errors import InputError, InputTypeError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


def real_numbers(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as finite floats, or refuse them in one line that calls them `name`."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputTypeError(f"The {name} must form a rectangular array of numbers.") from error
    if array.size and array.dtype.kind not in "biuf":
        raise InputTypeError(f"The {name} must be real numbers, not {array.dtype}.")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise InputError(f"The {name} contain NaN or infinity: drop or repair those values first.")
    return array


def whole_numbers(name: str, values: ArrayLike, low: int, high: int | None = None) -> IntArray:
    """Return `values` as integers from `low` to `high`, both included; `high` None is no upper limit."""
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


def _shown(values: object) -> str:
    return np.array2string(np.asarray(values), threshold=6, edgeitems=2, separator=", ").replace("\n", "")
