import pytest

from ebql.errors import InputError
from ebql.lab.parameters import choice, real, whole


def test_defaults_and_limits_are_included():
    assert whole({}, "n", 7, 1, 9) == 7
    assert [whole({"n": text}, "n", 7, 1, 9) for text in ("1", "9")] == [1, 9]
    assert [real({"x": text}, "x", 0.5, -1.0, 1.0) for text in ("-1", "1e0", "0.25")] == [-1.0, 1.0, 0.25]
    assert choice({"c": "b"}, "c", "a", "ab") == "b"


@pytest.mark.parametrize("text", ["0", "10", "2.5", "", "nan", "1e1", "x" * 100])
def test_a_whole_number_out_of_range_is_refused(text):
    with pytest.raises(InputError, match=r"n must be a whole number from 1 to 9, not ") as refused:
        whole({"n": text}, "n", 7, 1, 9)
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize("text", ["1.01", "-inf", "nan", "", "one"])
def test_a_number_out_of_range_is_refused(text):
    with pytest.raises(InputError, match=r"x must be a number from -1 to 1, not "):
        real({"x": text}, "x", 0.0, -1.0, 1.0)


def test_an_unknown_word_is_refused_with_the_closest_one():
    with pytest.raises(InputError, match="Did you mean 'steps'"):
        choice({"axis": "stepps"}, "axis", "steps", ("steps", "frames"))
