"""Each rule against numbers worked out by hand, with decoys where a wrong role would look."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm

from ebql.errors import InputError, InputTypeError
from ebql.estimators import MEMBER_RULES, apply_rule, by_rule, ensemble, selection_probabilities, single
from ebql.estimators.selection import SHARES, quick_selection_probabilities

# Member 0 selects arm 1. Its own value there (50) and the others' values elsewhere (90..99) are decoys.
Q = np.array([[10.0, 50.0, 20.0], [99.0, 4.0, 98.0], [97.0, 6.0, 90.0]])


@pytest.mark.parametrize(
    ("rule", "member", "parameter", "value"),
    [
        ("q-learning", 0, None, 50.0),
        ("ensemble-bootstrap", 0, None, (4 + 6) / 2),
        ("ensemble-bootstrap", 1, None, (10 + 97) / 2),
        # Members 1 and 2 sum to 196, 10, 188; member 0 has 10 there.
        ("split", 1, 2, 10.0),
        # The means are 206, 60 and 208 thirds.
        ("mean-maximum", 0, None, 208 / 3),
        # The minima are 10, 4 and 20.
        ("maxmin", 0, None, 20.0),
        # Members 1 and 2: minima 97, 4, 90.
        ("subset-minimum", 1, 2, 97.0),
        ("clipped-double", 1, None, 10.0),
        ("cross", 0, None, 4.0),
        ("cross", 2, None, 10.0),
        # The members in order of size: 10 97 99, 4 6 50, 20 90 98.
        ("order", 0, 2, 97.0),
        ("order", 0, 3, 99.0),
        ("robust-mean", 0, 9.0, 208 / 3 - 3),
        # The others' means are 98, 5, 94: arms 0 and 2 are candidates, and member 0 prefers 2 of them. They
        # say 94, which its own maximum of 50 bounds.
        ("candidates", 0, 2, 50.0),
        # Member 1: the others' means are 53.5, 28, 55; the one candidate is arm 2, worth 55 to them.
        ("candidates", 1, 1, 55.0),
        ("candidates", 1, 9, 53.5),  # all arms: member 1 selects arm 0
        ("smoothed", 0, 0.2, 0.8 * 50 + 0.2 * (10 + 20) / 2),
    ],
)
def test_the_rule_gives_the_number_worked_out_by_hand(rule, member, parameter, value):
    assert apply_rule(rule, Q, member, parameter) == pytest.approx(value)


def test_weighted_double_mixes_by_what_the_others_see_between_best_and_worst():
    # Member 0: best arm 1, worst 0. The other gives 4 and 99 there: β = 95 / (5 + 95).
    assert apply_rule("weighted-double", Q[:2], 0, 5.0) == pytest.approx(0.95 * 50 + 0.05 * 4)


# The variances (divisor K - 1) are 2, 8 and 2; the differences to member 0's best have the standard errors
# √(2 + 2), √(8 + 2) and 2. So its arms are 0, -4/√10 and -4 standard errors below.
TESTED = np.array([[10.0, 6.0, 2.0], [8.0, 2.0, 4.0]])


def test_the_t_estimator_averages_what_it_cannot_tell_from_the_best():
    scores = norm.cdf([-4 / np.sqrt(10), -4.0])
    assert scores[1] < 0.05 < scores[0]
    assert apply_rule("t-estimator", TESTED, 0, 0.05) == (10 + 6) / 2
    assert apply_rule("t-estimator", TESTED, 0, 1e-9) == (10 + 6 + 2) / 3
    assert apply_rule("t-estimator", TESTED, 0, 0.5) == 10.0  # the maximum


def test_the_k_estimator_weighs_by_the_kernel_of_the_score():
    weights = norm.cdf(np.array([0.0, -4 / np.sqrt(10), -4.0]) / 2)
    expected = weights @ TESTED[0] / weights.sum()
    assert apply_rule("k-estimator", TESTED, 0, 2.0) == pytest.approx(expected)
    assert apply_rule("k-estimator", TESTED, 0, 1e-6) == pytest.approx(10.0)


def test_the_adaptive_order_rises_with_the_agreement_of_the_members():
    # (K + c) / 4, rounded up: c = 5 of 5 members agree on arm 1, then 3, then none of 4.
    agreed = [[0.0, 10], [1, 20], [2, 30], [3, 40], [4, 50]]
    assert apply_rule("adaptive-order", agreed) == 30.0
    assert apply_rule("adaptive-order", [[60.0, 10], [61, 20], [2, 90], [3, 91], [4, 92]]) == 20.0
    assert apply_rule("adaptive-order", [[9.0, 0, 8], [0, 9, 8], [9, 0, 8], [0, 9, 8]]) == 8.0
    assert apply_rule("adaptive-order", np.array([agreed, np.negative(agreed)])).tolist() == [30.0, -2.0]


def test_arms_without_any_variance_are_told_apart_for_sure():
    agreed = np.array([[3.0, 3.0, 1.0]] * 2)
    assert apply_rule("t-estimator", agreed, 0, 1e-9) == 3.0
    assert apply_rule("k-estimator", agreed, 1, 9.0) == 3.0
    assert apply_rule("weighted", agreed) == 3.0


def test_the_weighted_estimator_weighs_two_arms_by_the_closed_form():
    # Means 4 and 2; the standard errors are √2/√2 = 1 and √8/√2 = 2: P(first) = Φ(2 / √5).
    q = np.array([[5.0, 4.0], [3.0, 0.0]])
    first = norm.cdf(2 / np.sqrt(5))
    assert apply_rule("weighted", q) == pytest.approx(4 * first + 2 * (1 - first), abs=0.005)


@given(st.integers(2, 8), st.integers(0, 2**31 - 1), st.sampled_from([0.0, 0.3, 1.0]))
def test_quick_selection_probabilities_are_near_the_exact_ones(arms, seed, unequal):
    rng = np.random.default_rng(seed)
    means, errors = rng.normal(size=arms), np.exp(unequal * rng.normal(size=arms))
    quick = quick_selection_probabilities(means, errors)
    assert quick.sum() == pytest.approx(1)
    assert quick == pytest.approx(selection_probabilities(means, errors), abs=0.5 / SHARES)


MEMBERS = hnp.arrays(float, st.tuples(st.integers(2, 5), st.integers(1, 4)), elements=st.integers(-9, 9))


@given(MEMBERS, st.integers(-50, 50))
def test_every_rule_moves_with_the_numbers_and_stays_between_them(q, shift):
    for name in MEMBER_RULES:
        parameter = 0.0 if name == "robust-mean" else None  # any other ρ goes below all numbers on purpose
        value = float(apply_rule(name, q, 0, parameter))
        assert q.min() - 1e-9 <= value <= q.max() + 1e-9, name
        assert apply_rule(name, q + shift, 0, parameter) == pytest.approx(value + shift), name
        batch = apply_rule(name, np.stack([q + shift, q]), 0, parameter)
        assert batch == pytest.approx(np.array([value + shift, value])), name


def test_rules_of_samples_are_the_estimators_that_have_their_own_names():
    samples = np.random.default_rng(0).normal(size=(7, 3, 20))
    np.testing.assert_allclose(by_rule(samples, "ensemble-bootstrap", 5).value, ensemble(samples, 5).value)
    np.testing.assert_allclose(by_rule(samples, "q-learning", 1).value, single(samples).value)
    np.testing.assert_allclose(by_rule(samples, "mean-maximum", 5).value, single(samples).value)
    assert (by_rule(samples, "mean-maximum", 5).index == single(samples).index).all()


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        (("maximin", Q), InputError, "Did you mean 'maxmin'"),
        (("cross", Q[:1]), InputError, "The rule cross needs at least 2 members, not 1."),
        (("maxmin", Q, 0, 1.0), InputError, "The rule maxmin has no parameter"),
        (("maxmin", Q, 3), InputError, "member must be between 0 and 2, not 3."),
        (("maxmin", Q[0]), InputError, "(..., members, arms)"),
        (("t-estimator", Q, 0, 0.6), InputError, "alpha must be a number above 0 and at most 0.5, not 0.6."),
        (("order", Q, 0, 4), InputError, "index must be a whole number of at least 1 and at most 3, not 4."),
        (
            ("split", Q, 0, 3),
            InputError,
            "n_index must be a whole number of at least 1 and at most 2, not 3.",
        ),
        (("order", Q, 0, 1.5), InputError, "whole number"),
        (("k-estimator", Q, 0, 0), InputError, "scale must be a number above 0, not 0."),
        (("robust-mean", Q, 0, float("nan")), InputError, "rho must be"),
        (("smoothed", Q, 0, "a tenth"), InputTypeError, "smoothing must be a number, not 'a tenth'."),
        (("order", [[1.0, np.nan]]), InputError, "NaN"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, error, told):
    with pytest.raises(error) as raised:
        apply_rule(*arguments)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_more_members_than_samples_are_refused():
    with pytest.raises(InputError, match="An ensemble of 4 needs at least 4 samples"):
        by_rule(np.zeros((2, 3)), "maxmin", 4)
