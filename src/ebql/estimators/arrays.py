"""Input checks: turn arguments into arrays of numbers, or raise a one-line error."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from ebql.errors import InputError, InputTypeError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

# The interval of a simulated MSE sums fourth powers of errors, which overflow for larger numbers.
LARGEST = 1e70


def real_numbers(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as finite floats; error messages call them `name`."""
    _check_not_masked(f"The {name}", values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputTypeError(f"The {name} must form a rectangular array of numbers.") from error
    if array.size and array.dtype.kind not in "biuf":
        raise InputTypeError(f"The {name} must be real numbers, not {array.dtype}.")
    with np.errstate(over="ignore"):  # longdoubles too large for a float64 become infinite
        array = array.astype(np.float64, copy=False)
    largest = max(array.max(), -array.min()) if array.size else 0.0
    if not np.isfinite(largest):
        raise InputError(f"The {name} contain NaN or infinity: remove or replace those values first.")
    if largest > LARGEST:
        raise InputError(f"The {name} reach {largest:g} in size: rescale them to {LARGEST:g} or less.")
    return array


def whole_numbers(name: str, values: ArrayLike, low: int, high: int | None = None) -> IntArray:
    """Return `values` as integers from `low` to `high` inclusive; None means no upper limit."""
    _check_not_masked(name, values)
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must be a whole number, not {_formatted(values)}.")
    if array.size and (array.min() < low or (high is not None and array.max() > high)):
        limits = f"at least {low}" if high is None else f"between {low} and {high}"
        raise InputError(f"{name} must be {limits}, not {_formatted(values)}.")
    return array.astype(np.int64, copy=False)


def gaussian_arms(means: ArrayLike, stds: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the means and standard deviations of m arms, both (m,); a single std applies to all arms."""
    means = real_numbers("means", means)
    stds = real_numbers("stds", stds)
    if means.ndim != 1 or means.size == 0:
        raise InputError("The means must be a list with one number per arm, and at least one arm.")
    if stds.ndim > 1 or stds.size not in (1, means.size):
        raise InputError(f"Give one std for all arms or one per arm ({means.size}), not {stds.size}.")
    return means, np.broadcast_to(non_negative("stds", stds), means.shape)


def non_negative(name: str, values: FloatArray) -> FloatArray:
    """Return `values`; raise an error if one of them is negative."""
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
        raise InputError(
            f"The shapes of means {means.shape} and errors {errors.shape} do not match."
        ) from error
    if means.ndim == 0 or means.shape[-1] == 0:
        raise InputError("The last axis of the means must have one number per arm, and at least one arm.")
    return means, errors


def two_sided_quantile(confidence: float) -> float:
    """Return the half-width, in standard errors, of a normal interval with this `confidence`."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}.")
    return float(ndtri(0.5 + confidence / 2))


def generator(rng: object) -> np.random.Generator:
    """Return `rng` if it is a NumPy Generator; raise an error for seeds and the older RandomState."""
    if not isinstance(rng, np.random.Generator):
        raise InputTypeError(f"rng must be a numpy.random.Generator, not {type(rng).__name__}.")
    return rng


def _check_not_masked(name: str, values: object) -> None:
    """Raise an error for masked arrays, also inside lists: conversion would unmask their values."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputTypeError(f"{name} must not be a masked array: pass the unmasked values (.compressed()).")
    if isinstance(values, list | tuple):
        for value in values:
            if isinstance(value, list | tuple | np.ma.MaskedArray):
                _check_not_masked(name, value)


def _formatted(values: object) -> str:
    return np.array2string(np.asarray(values), threshold=6, edgeitems=2, separator=", ").replace("\n", "")
