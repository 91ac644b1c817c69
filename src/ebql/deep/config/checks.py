"""Checks of single options. Errors are one line and name the option as on the command line."""

import math
from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, get_args, get_origin

import numpy as np

from ebql.errors import InputError, InputTypeError, unknown_name, whole_number

_TOO_LARGE = 2**63
_LARGEST = float(np.finfo(np.float32).max)  # networks compute in 32 bits


def option_name(name: str) -> str:
    """Return an option's name as on the command line."""
    return name.replace("_", "-")


def positive(options: object, names: str) -> None:
    """Refuse any of the named options that is not above 0."""
    for name in names.split():
        if not getattr(options, name) > 0:
            raise InputError(f"{option_name(name)} must be positive, not {getattr(options, name)}.")


def not_negative(options: object, names: str) -> None:
    """Refuse any of the named options that is below 0."""
    for name in names.split():
        if not getattr(options, name) >= 0:
            raise InputError(f"{option_name(name)} must not be negative, but is {getattr(options, name)}.")


def probability(options: object, names: str) -> None:
    """Refuse any of the named options that does not lie in [0, 1]."""
    for name in names.split():
        if not 0 <= getattr(options, name) <= 1:
            raise InputError(f"{option_name(name)} must lie between 0 and 1, not {getattr(options, name)}.")


def distinct(v_min: float, v_max: float, atoms: int) -> None:
    """Refuse atoms between v_min and v_max that coincide or overflow as 32-bit numbers."""
    step = (v_max - v_min) / (atoms - 1)
    if v_max - v_min > _LARGEST or step < np.spacing(np.float32(max(-v_min, v_max))):
        raise InputError(
            f"{atoms} atoms from v-min {v_min} to v-max {v_max} coincide or overflow as 32-bit numbers: "
            "use fewer atoms or other bounds."
        )


def check_epsilon_schedule(
    schedule: str, start: float, end: float, points: Sequence[tuple[int, float]]
) -> None:
    """Refuse a schedule of ε that leaves [0, 1], goes back in time, or can't reach its end."""
    if schedule == "exponential" and not (start > 0 and end > 0):
        raise InputError(
            "An exponential epsilon-schedule never reaches 0: set epsilon-start and epsilon-end above 0."
        )
    if points and schedule != "piecewise":
        raise InputError(f"epsilon-points need epsilon-schedule piecewise, not {schedule}.")
    if schedule != "piecewise":
        return
    if not points:
        raise InputError("A piecewise epsilon-schedule needs epsilon-points, such as 0 1 10000 0.05.")
    steps = [step for step, _ in points]
    if steps[0] < 0 or any(after <= before for before, after in pairwise(steps)):
        raise InputError(f"The steps of epsilon-points must be non-negative and increasing, not {steps}.")
    for _, epsilon in points:
        if not 0 <= epsilon <= 1:
            raise InputError(f"The ε of epsilon-points must lie between 0 and 1, not {epsilon}.")


def checked(name: str, annotation: Any, value: Any) -> Any:
    """Return an option's value in the annotated type (a NumPy integer becomes an int), or refuse it."""
    option = option_name(name)
    if value is None and annotation in (float | None, int | None):
        return None
    if annotation in (int, int | None):
        return _whole(option, value)
    if annotation in (float, float | None):
        return _finite(option, value)
    if annotation in (bool, str):
        if not isinstance(value, annotation):
            wanted = "True or False" if annotation is bool else "a string"
            raise InputTypeError(f"{option} must be {wanted}, not {value!r}.")
    elif words := _words(annotation):
        if int in get_args(annotation) and not isinstance(value, str):
            return _whole(option, value)
        if value not in words:
            raise unknown_name(option, str(value), words)
    elif annotation == tuple[int, ...]:
        if not isinstance(value, list | tuple):
            raise InputTypeError(
                f"{option} must be a list of whole numbers, such as (64, 64), not {value!r}."
            )
        return tuple(_whole(option, width) for width in value)
    elif annotation == tuple[tuple[int, float], ...]:
        if not isinstance(value, list | tuple) or not all(
            isinstance(pair, list | tuple) and len(pair) == 2 for pair in value
        ):
            raise InputTypeError(
                f"{option} must be a list of pairs, such as ((0, 1.0), (10_000, 0.05)), not {value!r}."
            )
        return tuple((_whole(option, step), _finite(option, number)) for step, number in value)
    return value


def _words(annotation: Any) -> tuple[str, ...]:
    """Return the words of a `Literal`, also inside a union."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(word for part in get_args(annotation) for word in _words(part))


def _whole(option: str, value: Any) -> int:
    if isinstance(value, bool):
        raise InputTypeError(f"{option} must be a whole number, not {value!r}.")
    number = whole_number(option, value, least=-_TOO_LARGE)
    if number >= _TOO_LARGE:
        raise InputError(f"{option} must be below 2⁶³, not {number}.")
    return number


def _finite(option: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{option} must be a number, not {value!r}.")
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{option} must be a finite number, not {value!r}.")
    if abs(number) > _LARGEST:
        raise InputError(f"{option} must lie within ±{_LARGEST:.1e}, not {value!r}.")
    return number
