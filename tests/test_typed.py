import math
from dataclasses import dataclass

import pytest

from ebql.typed import count, typed


@dataclass(frozen=True)
class Part:
    path: tuple[str | int, ...]
    size: int = 1


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    name: str | None = None


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, 3, 3),
        (int, -(2**63) + 1, -(2**63) + 1),
        (float, 3, 3),
        (str | None, None, None),
        (bool, True, True),
        (tuple[int, ...], [1, 2], (1, 2)),
        (list[float], [1, 0.5], [1, 0.5]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict, {"a": [None]}, {"a": [None]}),
        (Whole, {"parts": [{"path": ["a", 0]}]}, Whole((Part(("a", 0)),))),
        (Whole, {"parts": [], "name": "x"}, Whole((), "x")),
    ],
)
def test_values_get_the_type_that_the_annotation_says(kind, value, expected):
    got = typed(kind, value)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True),
        (int, 1.0),
        (int, "1"),
        (int, 2**63),
        (float, math.inf),
        (float, False),
        (float, None),
        (str, None),
        (bool, 1),
        (str | None, 0),
        (tuple[int, ...], "12"),
        (tuple[int, ...], [1, "2"]),
        (list[float], {"0": 1}),
        (dict[str, int], {"a": "1"}),
        (dict[str, int], [1]),
        (Whole, {"name": "x"}),
        (Whole, {"parts": [], "more": 1}),
        (Whole, {"parts": [{"path": [0.5]}]}),
        (Whole, {"parts": [{"path": [], "size": True}]}),
        (Whole, []),
    ],
)
def test_a_value_of_another_type_is_refused(kind, value):
    with pytest.raises(TypeError):
        typed(kind, value)


def test_a_count_is_a_whole_number_that_is_not_negative():
    assert count(0) == 0
    for wrong in (-1, 0.5, True, "1", None):
        with pytest.raises(TypeError):
            count(wrong)
