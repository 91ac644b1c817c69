"""Values that were decoded from JSON, checked against type annotations before any code relies on them."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_LARGEST = 2**63  # the arrays that such numbers end in hold 64 bits


def typed(kind: Any, value: Any) -> Any:
    """Return `value` as the annotated type `kind`; raise a `TypeError` if it is of another type.

    `kind` is bool, int, float, str, None, a union, `tuple[X, ...]`, `list[X]`, `dict[str, X]` or a dataclass
    of such. A list becomes a tuple where the type says so, and an object a dataclass. Whole numbers must fit
    into 64 bits, and other numbers must be finite. Python counts True as the number 1; this does not.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _any_of(arguments, value)
    if origin in (tuple, list) and isinstance(value, list | tuple):
        return origin(typed(arguments[0], item) for item in value)
    if origin is dict and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: typed(arguments[1], item) for key, item in value.items()}
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        return _dataclass(kind, value)
    if origin is None and not is_dataclass(kind) and _is(kind, value):
        return value
    raise TypeError(f"{value!r:.60} is not of the type {getattr(kind, '__name__', kind)}")


def count(value: Any) -> int:
    """Return a whole number of at least 0; raise a `TypeError` for anything else."""
    number: int = typed(int, value)
    if number < 0:
        raise TypeError(f"{number} is negative")
    return number


def _is(kind: Any, value: Any) -> bool:
    if kind in (None, NoneType):
        return value is None
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind)


def _any_of(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        try:
            return typed(kind, value)
        except TypeError:
            continue
    raise TypeError(f"{value!r:.60} is of none of the types {', '.join(map(str, kinds))}")


def _dataclass(kind: type, content: Mapping[str, Any]) -> Any:
    types = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    required = {
        name for name, field in known.items() if field.default is MISSING and field.default_factory is MISSING
    }
    if wrong := (content.keys() - known.keys()) | (required - content.keys()):
        raise TypeError(f"{kind.__name__} has unknown or missing keys: {', '.join(sorted(map(str, wrong)))}")
    return kind(**{name: typed(types[name], value) for name, value in content.items()})
