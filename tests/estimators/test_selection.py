from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from ebql.estimators import selection_probabilities


def by_adaptive_quadrature(means, errors, arm):
    """∫ φ(t) Π_{j≠a} F_j(μ_a + σ_a t) dt, with the transitions of all F_j marked for the routine."""
    others = [j for j in range(len(means)) if j != arm]

    def integrand(t):
        x = means[arm] + errors[arm] * t
        return norm.pdf(t) * np.prod([norm.cdf((x - means[j]) / errors[j]) for j in others])

    marks = [
        (means[j] + g * errors[j] - means[arm]) / errors[arm]
        for j in others
        for g in (-6, -3, -1, 0, 1, 3, 6)
    ]
    edges = np.unique([-12.0, -4.0, 0.0, 4.0, 12.0, *(mark for mark in marks if -12 < mark < 12)])
    return sum(quad(integrand, *piece, epsabs=1e-14, epsrel=1e-13)[0] for piece in pairwise(edges))


@pytest.mark.parametrize(
    ("means", "errors"),
    [
        ([0.0, -0.1, 0.3], [1.0, 1.0, 1.0]),
        ([1.0, 0.8, 0.5, 0.0], [0.5, 0.5, 0.5, 0.5]),
        ([0.0, -1.0, 2.0], [0.1, 3.0, 1.0]),
        ([0.0, 1e-6, -2e-6], [1.0, 2.0, 0.5]),
        ([5.0, -5.0, 0.0], [10.0, 0.01, 1.0]),
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.3, 0.1, 1.0, 0.5, 0.2, 0.7]),
    ],
)
def test_agrees_with_an_independent_integration(means, errors):
    expected = [by_adaptive_quadrature(means, errors, arm) for arm in range(len(means))]
    np.testing.assert_allclose(selection_probabilities(means, errors), expected, rtol=0, atol=1e-12)


@given(st.lists(st.floats(-6, 6), min_size=3, max_size=3))
def test_three_arms_of_equal_mean_have_a_closed_form_whatever_their_spreads(exponents):
    """P(arm a is largest) = 1/4 + asin(ρ)/2π, with ρ the correlation of its leads over the other two."""
    errors = 10.0 ** np.array(exponents)
    u, v = np.roll(errors, -1), np.roll(errors, 1)
    correlation = errors / np.hypot(errors, u) * (errors / np.hypot(errors, v))
    expected = 0.25 + np.arcsin(np.minimum(correlation, 1)) / (2 * np.pi)
    # asin loses half its digits next to 1; the quadrature does not.
    tolerance = np.where(correlation > 0.999, 1e-7, 1e-13)
    assert (abs(selection_probabilities(np.full(3, 7.0), errors) - expected) <= tolerance).all()


def test_many_equal_arms_share_equally():
    np.testing.assert_allclose(selection_probabilities(np.zeros(300), 2.0) * 300, 1, rtol=1e-12)


@pytest.mark.parametrize("gap", [1e-6, 1.0, 5.0, 10.0, 30.0, 50.0])
def test_a_hopeless_third_arm_leaves_the_closed_form_of_two_in_both_tails(gap):
    two = selection_probabilities([0.0, -gap], [0.6, 0.8])
    three = selection_probabilities([0.0, -gap, -1e6], [0.6, 0.8, 1.0])
    assert two[1] == pytest.approx(norm.cdf(-gap), rel=1e-12)
    np.testing.assert_allclose(three, [*two, 0.0], rtol=1e-10)


def test_narrow_arms_far_below_a_wide_one_are_told_apart():
    # Both narrow arms have nearly the same value relative to an arm of σ = 1000, so only their order matters.
    # Nodes rounded to floats near -1000 would be off by a ten-thousandth of the narrow arms' spread.
    mean, lead, error = -1000.3, 2.0**-30, 1e-9
    _, first, second = selection_probabilities([0.0, mean, mean - lead], [1000.0, error, error])
    assert first + second == pytest.approx(norm.cdf(mean / 1000), abs=1e-12)
    assert first / (first + second) == pytest.approx(norm.cdf(lead / (2**0.5 * error)), abs=1e-12)


@settings(max_examples=60)
@given(
    gaps=st.lists(st.floats(-6, 3).map(lambda e: -(10.0**e)), min_size=1, max_size=5),
    exponents=st.lists(st.floats(-6, 6), min_size=6, max_size=6),
    offset=st.sampled_from([0.0, 1.0, -1e3]),
)
def test_extremes_sum_to_one_without_a_warning(gaps, exponents, offset):
    means = np.array([0.0, *gaps]) + offset
    probabilities = selection_probabilities(means, 10.0 ** np.array(exponents[: means.size]))
    assert (probabilities >= 0).all()
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)


@given(st.permutations(range(5)))
def test_the_order_of_the_arms_does_not_matter(order):
    means, errors = np.array([0.0, 0.5, -0.3, 0.4, 1.0]), np.array([1.0, 0.1, 2.0, 0.5, 0.7])
    order = np.array(order)
    expected = selection_probabilities(means, errors)[order]
    np.testing.assert_allclose(selection_probabilities(means[order], errors[order]), expected, atol=1e-14)


@pytest.mark.parametrize(
    ("means", "errors", "expected"),
    [
        ([4.0], [1.0], [1.0]),
        ([1.0, 0.0], [0.0, 0.0], [1.0, 0.0]),
        ([1.0, 1.0], [0.0, 0.0], [0.5, 0.5]),
        ([0.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]),
        ([0.0, -3.0, -1.0], [0.0, 0.0, 1.0], [norm.cdf(1), 0.0, norm.cdf(-1)]),
        ([0.0, 0.0, -1.0], [0.0, 0.0, 1.0], [norm.cdf(1) / 2, norm.cdf(1) / 2, norm.cdf(-1)]),
        ([0.0, -1.0, -2.0], [1.0, 0.0, 0.0], [norm.cdf(1), norm.cdf(-1), 0.0]),
        ([0.0, -1.0, -2.0], [1.0, 1e-300, 5e-324], [norm.cdf(1), norm.cdf(-1), 0.0]),
    ],
)
def test_arms_known_exactly(means, errors, expected):
    np.testing.assert_allclose(selection_probabilities(means, errors), expected, rtol=1e-13)


def test_broadcasts_over_leading_axes():
    errors = np.array([[1.0], [0.1]])
    for means in ([0.0, 0.1], [0.0, 0.1, 0.2]):
        both = selection_probabilities(means, errors)
        assert both.shape == (2, len(means))
        np.testing.assert_array_equal(both[1], selection_probabilities(means, 0.1))


@pytest.mark.parametrize(
    ("means", "errors", "message"),
    [
        ([0.0, np.nan], 1.0, "means contain NaN"),
        ([0.0, 1.0], -1.0, "must not be negative: one is -1"),
        ([0.0, 1.0, 2.0], [1.0, 1.0], "do not match"),
        (0.0, 1.0, "at least one arm"),
    ],
)
def test_bad_input_is_one_clear_line(means, errors, message):
    with pytest.raises(ValueError, match=message):
        selection_probabilities(means, errors)


def test_arms_that_are_alike_count_once_each():
    means, errors = [0.2, -0.1, 0.2, 0.2, -0.1], [0.5, 1.0, 0.5, 0.3, 1.0]
    found = selection_probabilities(means, errors)
    expected = [by_adaptive_quadrature(means, errors, arm) for arm in range(5)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found[0] == found[2]
    assert found[1] == found[4]
