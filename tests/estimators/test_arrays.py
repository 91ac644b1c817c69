import numpy as np
import pytest

from ebql.estimators.arrays import (
    estimated_arms,
    gaussian_arms,
    generator,
    non_negative,
    real_numbers,
    two_sided_quantile,
    whole_numbers,
)


def test_numbers_become_floats_and_whole_numbers_integers():
    for values in ([1, 2], [True, False], np.array([1, 2], np.int8), [[1.5], [2.5]]):
        array = real_numbers("values", values)
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, values)
    assert whole_numbers("n", np.uint8(3), 1).dtype == np.int64


def test_one_std_applies_to_all_arms():
    means, stds = gaussian_arms([1, 2, 3], 0.5)
    assert (means.tolist(), stds.tolist()) == ([1, 2, 3], [0.5] * 3)


def test_means_and_errors_are_broadcast():
    means, errors = estimated_arms([[0.0, 1.0]], [[1.0], [2.0]])
    assert means.shape == errors.shape == (2, 2)


def test_the_quantile_is_the_normal_ones():
    assert two_sided_quantile(0.95) == pytest.approx(1.959964)
    assert two_sided_quantile(0.6826894921370859) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: real_numbers("means", [1.0, np.nan]),
            "The means contain NaN or infinity: remove or replace",
        ),
        (lambda: real_numbers("means", [-2e70]), r"The means reach 2e\+70 in size: rescale them to 1e\+70"),
        (lambda: real_numbers("means", ["a"]), "The means must be real numbers"),
        (lambda: real_numbers("means", [[1.0], [1.0, 2.0]]), "rectangular array"),
        (lambda: whole_numbers("n", 2.0, 1), "n must be a whole number, not 2"),
        (lambda: whole_numbers("n", [1, 9], 2), "n must be at least 2"),
        (lambda: whole_numbers("n", [3, 9], 2, 8), r"n must be between 2 and 8, not \[3, 9\]"),
        (lambda: gaussian_arms([[1.0]], 1.0), "one number per arm"),
        (lambda: gaussian_arms([1.0, 2.0], [1.0, 2.0, 3.0]), r"one per arm \(2\), not 3"),
        (lambda: estimated_arms([1.0, 2.0], [1.0, 2.0, 3.0]), r"means \(2,\) and errors \(3,\) do not match"),
        (lambda: estimated_arms([], []), "at least one arm"),
        (lambda: non_negative("stds", np.array([1.0, -0.5])), "stds must not be negative: one is -0.5"),
        (lambda: two_sided_quantile(1.0), "confidence must lie between 0 and 1"),
        (lambda: generator(np.random.RandomState(0)), "must be a numpy.random.Generator, not RandomState"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
