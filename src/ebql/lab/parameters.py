"""Read the parameters of a request, or say in one line what is wrong with them."""

import math
from collections.abc import Iterable, Mapping

from ebql.errors import InputError, unknown_name

Query = Mapping[str, str]


def whole(query: Query, name: str, default: int, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`; `default` if the request does not give one."""
    text = query.get(name, str(default))
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise InputError(f"{name} must be a whole number from {low:,} to {high:,}, not {text[:40]!r}.")
    return number


def real(query: Query, name: str, default: float, low: float, high: float) -> float:
    """Return a number from `low` to `high`; `default` if the request does not give one."""
    text = query.get(name, str(default))
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, not {text[:40]!r}.")
    return number


def choice(query: Query, name: str, default: str, options: Iterable[str]) -> str:
    """Return one of `options`; `default` if the request does not give one."""
    word = query.get(name, default)
    known = list(options)
    if word not in known:
        raise unknown_name(name, word[:40], known)
    return word
