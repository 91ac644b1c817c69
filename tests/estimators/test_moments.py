from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from ebql.estimators import (
    double,
    ensemble,
    ensemble_moments,
    exact_moments,
    gaussian,
    max_moments,
    order_moments,
    simulate,
    single,
    single_moments,
    two_phase_moments,
    weighted_double,
)

# 4.5 standard errors: a correct formula lies outside one such interval in 150,000.
CONFIDENCE = 1 - 2 * norm.cdf(-4.5)
ARMS = [
    ([0.3, 0.0], 0.5),
    ([0.0, 0.2, 0.25], [1.0, 0.5, 2.0]),
    (np.linspace(0, 0.6, 6), 0.5),
]


def assert_simulation_agrees(moments, means, stds, n, estimator):
    simulated = simulate(
        gaussian(means, stds), n, estimator, replications=60_000, seed=5, confidence=CONFIDENCE
    )
    for name in ("bias", "variance", "mse"):
        interval = getattr(simulated, name)
        assert interval.low <= getattr(moments, name) <= interval.high, name


@pytest.mark.parametrize(("means", "stds"), ARMS)
@pytest.mark.parametrize("n_index", [1, 4, 10])
def test_the_weighted_double_formulas_agree_with_simulation(means, stds, n_index):
    moments = exact_moments(means, stds, 12, n_index)
    assert_simulation_agrees(moments, means, stds, 12, partial(weighted_double, n_index=n_index))


@pytest.mark.parametrize(("means", "stds"), ARMS)
def test_the_single_formulas_agree_with_simulation(means, stds):
    assert_simulation_agrees(single_moments(means, stds, 12), means, stds, 12, single)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_ensembles_agree_with_simulation_also_when_k_does_not_divide_n(k):
    means, stds = ARMS[1]
    moments = ensemble_moments(means, stds, 13, k)
    assert_simulation_agrees(moments, means, stds, 13, partial(ensemble, k=k))


def test_selection_agrees_with_simulated_choices():
    means, stds = ARMS[1]
    index = double(gaussian(means, stds)(np.random.default_rng(2), 100_000, 4)).index
    shares = np.bincount(index, minlength=3) / index.size
    assert (abs(exact_moments(means, stds, 4, 2).selection - shares) < 4.5 * 0.5 / 100_000**0.5).all()


def test_unequal_counts_agree_with_simulation():
    means, stds, counts = [0.0, 0.3], np.array([1.0, 2.0]), np.array([4, 9])
    rng = np.random.default_rng(3)
    samples = [
        [rng.normal(m, s, c) for m, s, c in zip(means, stds, counts, strict=True)] for _ in range(20_000)
    ]
    errors = np.array([ensemble(arms, 3).value for arms in samples]) - 0.3
    moments = ensemble_moments(means, stds, counts, 3)
    assert errors.mean() == pytest.approx(moments.bias, abs=4.5 * errors.std() / errors.size**0.5)
    assert (errors**2).mean() == pytest.approx(moments.mse, abs=4.5 * (errors**2).std() / errors.size**0.5)


def test_rotation_keeps_the_bias_and_lowers_the_variance():
    arms, n, k = gaussian([0.0, 0.1, 0.2], 1.0), 20, 5
    moments = ensemble_moments(arms.means, arms.stds, n, k)
    rotated = simulate(
        arms, n, partial(ensemble, k=k, rotate=True), replications=60_000, confidence=CONFIDENCE
    )
    assert rotated.bias.low <= moments.bias <= rotated.bias.high
    assert rotated.variance.high < 0.8 * moments.variance


def test_a_case_worked_by_hand():
    # Two arms, gap 2, σ = 1, 4 of 12 samples select: P(wrong) = Φ(-2 / √(2/4)), evaluator variance 1/8.
    wrong = norm.cdf(-2 / 0.5**0.5)
    bias, variance, mse, selection = exact_moments([5.0, 3.0], 1.0, 12, 4)
    assert bias == pytest.approx(-2 * wrong, rel=1e-12)
    assert variance == pytest.approx(1 / 8 + 4 * wrong * (1 - wrong), rel=1e-12)
    assert mse == pytest.approx(1 / 8 + 4 * wrong, rel=1e-12)
    np.testing.assert_allclose(selection, [1 - wrong, wrong], rtol=1e-12)


@given(
    means=st.lists(st.floats(-2, 2), min_size=1, max_size=5),
    stds=st.lists(st.floats(0.1, 3), min_size=5, max_size=5),
    n_index=st.integers(1, 9),
)
def test_mse_is_variance_plus_squared_bias(means, stds, n_index):
    moments = exact_moments(means, stds[: len(means)], 10, n_index)
    assert moments.mse == pytest.approx(moments.variance + moments.bias**2, rel=1e-12)


@given(
    means=st.lists(st.floats(-2, 2), min_size=2, max_size=5),
    stds=st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.0]), min_size=5, max_size=5),
    k=st.integers(2, 12),
)
def test_lemma_1_the_ensemble_underestimates_strictly_iff_it_may_pick_a_wrong_arm(means, stds, k):
    moments = ensemble_moments(means, stds[: len(means)], 12, k)
    wrong = moments.selection[np.array(means) < max(means)].sum()
    assert moments.bias <= 0
    # A product of denormals may round to zero, so a probability counts only if floats can represent it.
    assert (moments.bias < 0) == (wrong > 0) or wrong < 1e-290


def test_lemma_1_holds_with_equality_when_no_arm_is_wrong_or_none_can_be_mistaken():
    assert exact_moments([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], 10, 3).bias == 0
    assert exact_moments([1.0, 0.0, -1.0], 0.0, 10, 3).bias == 0
    assert exact_moments([1.0, 0.999999, 0.0], 0.5, 10, 3).bias < 0


@example(means=[3.0, -3.0], stds=[0.21875, 0.25, 1.0, 1.0, 1.0])  # a bias of 2e-217
@given(
    means=st.lists(st.floats(-3, 3), min_size=2, max_size=5),
    stds=st.lists(st.floats(0.2, 3), min_size=5, max_size=5),
)
def test_the_single_estimator_overestimates(means, stds):
    """Appendix D."""
    assert single_moments(means, stds[: len(means)], 3).bias > 0


@pytest.mark.parametrize("gap", [0.0, 1e-6, 0.5, 3.0, 10.0, 25.0])
def test_the_single_bias_of_two_arms_keeps_its_digits_in_the_tail(gap):
    # E[(X_2 - X_1)⁺] = θ ∫_{Δ/θ}^∞ Φ(-t) dt, scaled by its first value so that quad sees no tiny numbers.
    spread = np.hypot(1.0, 0.5)
    u = gap / spread
    scaled, _ = quad(lambda t: np.exp(norm.logcdf(-t) - norm.logcdf(-u)), u, u + 12, epsabs=0, epsrel=1e-12)
    expected = spread * scaled * norm.cdf(-u)
    assert max_moments([0.0, -gap], [1.0, 0.5]).bias == pytest.approx(expected, rel=1e-10)


def test_single_moments_of_known_order_statistics():
    two, three = single_moments([0.0, 0.0], 1.0, 1), single_moments(np.zeros(3), 1.0, 1)
    assert two.bias == pytest.approx(np.pi**-0.5, rel=1e-13)
    assert two.variance == pytest.approx(1 - 1 / np.pi, rel=1e-13)
    assert three.bias == pytest.approx(1.5 * np.pi**-0.5, rel=1e-13)
    assert three.variance == pytest.approx(1 + (np.sqrt(3) / 2 - 9 / 4) / np.pi, rel=1e-13)


def test_single_moments_with_arms_known_exactly():
    # max(X, -1) with X ~ N(0, 1): mean φ(1) - Φ(-1); second moment Φ(1) - φ(1) above -1, Φ(-1) at -1.
    moments = max_moments([0.0, -1.0, -1.0], [1.0, 0.0, 0.0])
    assert moments.bias == pytest.approx(norm.pdf(1) - norm.cdf(-1), rel=1e-12)
    assert moments.mse == pytest.approx(norm.cdf(1) - norm.pdf(1) + norm.cdf(-1), rel=1e-12)
    np.testing.assert_allclose(moments.selection, [norm.cdf(1), norm.cdf(-1) / 2, norm.cdf(-1) / 2])
    assert max_moments([2.0, 1.0], 0.0)[:3] == (0, 0, 0)


@pytest.mark.parametrize("gap_in_stds", [1e-6, 1e-3, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("ratio", [1e-6, 1.0, 1e6])
def test_extreme_gaps_and_spreads_give_finite_moments_without_a_warning(gap_in_stds, ratio):
    for means in ([0.0, -gap_in_stds], [0.0, -gap_in_stds, -2 * gap_in_stds]):
        stds = np.array([1.0, ratio, 1.0])[: len(means)]
        for moments in (exact_moments(means, stds, 10, [1, 5, 9]), single_moments(means, stds, [1, 100])):
            assert all(np.isfinite(field).all() for field in moments)
            np.testing.assert_allclose(moments.mse, moments.variance + moments.bias**2, rtol=1e-9)


def test_the_largest_numbers_accepted_are_small_enough_to_square():
    for means, stds in (([-1e70, 1e70], 1e70), ([-1e70, 1e70, 1e70], [1.0, 1e70, 0.0])):
        for moments in (exact_moments(means, stds, 10, [1, 5, 9]), single_moments(means, stds, 10)):
            assert all(np.isfinite(field).all() for field in moments)
    simulated = simulate(gaussian([-1e70, 1e70], 0.0), 2, single, max_mean=-1e70, replications=1000)
    assert np.isfinite(simulated).all()


def test_a_common_offset_costs_no_digits():
    gaps, stds = np.array([0.0, -0.25, -0.5]), 2.0**-10
    for here, there in (
        (exact_moments(gaps, stds, 10, 2), exact_moments(gaps + 2.0**30, stds, 10, 2)),
        (single_moments(gaps, stds, 10), single_moments(gaps + 2.0**30, stds, 10)),
    ):
        assert here[:3] == there[:3]


def test_arrays_broadcast_and_agree_with_scalars():
    means = [0.0, 0.1, 0.3]
    moments = exact_moments(means, 1.0, [[10], [20]], [1, 4, 9])
    assert moments.bias.shape == moments.mse.shape == (2, 3)
    assert moments.selection.shape == (2, 3, 3)
    assert moments.mse[1, 2] == exact_moments(means, 1.0, 20, 9).mse
    several = single_moments(means, 1.0, [10, 20])
    assert several.variance[1] == single_moments(means, 1.0, 20).variance
    batch = two_phase_moments(np.zeros((5, 2)), 1.0, np.ones((4, 1, 1)))
    assert batch.bias.shape == batch.variance.shape == (4, 5)


def test_equal_members_are_the_weighted_double():
    means, stds = ARMS[1]
    for ours, theirs in zip(
        ensemble_moments(means, stds, 12, [2, 3, 4]), exact_moments(means, stds, 12, [6, 4, 3]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_the_selector_is_among_the_larger_members():
    # 13 samples in 5 blocks: 3, 3, 3, 2, 2. Three samples select; 1/4 Σ over the others' means has
    # the variance (1/3 + 1/3 + 1/2 + 1/2) / 16.
    means, stds = ARMS[1]
    moments = ensemble_moments(means, stds, 13, 5)
    np.testing.assert_array_equal(moments.selection, exact_moments(means, stds, 13, 3).selection)
    evaluators = two_phase_moments(means, np.array(stds) / 3**0.5, np.array(stds) * (5 / 3 / 16) ** 0.5)
    assert moments.variance == pytest.approx(evaluators.variance, rel=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact_moments([0.0, 1.0], -1.0, 10, 2), "stds must not be negative: one is -1"),
        (lambda: exact_moments([0.0, np.inf], 1.0, 10, 2), "means contain NaN or infinity"),
        (lambda: exact_moments([0.0, 1.0], [1.0, 1.0, 1.0], 10, 2), r"one per arm \(2\), not 3"),
        (lambda: exact_moments([0.0, 1e200], 1.0, 10, 2), r"means reach 1e\+200 in size: rescale them"),
        (lambda: max_moments([0.0, 1.0], 1e100), r"errors reach 1e\+100"),
        (lambda: exact_moments(np.ma.masked_equal([0.0, 9.0], 9.0), 1.0, 10, 2), "not be a masked array"),
        (lambda: single_moments([0.0, 1.0], 1.0, np.ma.masked_equal([5, 9], 9)), "n must not be a masked"),
        (lambda: exact_moments([], 1.0, 10, 2), "at least one arm"),
        (lambda: exact_moments([0.0, 1.0], 1.0, 10, 0), "n_index must be at least 1, not 0"),
        (lambda: exact_moments([0.0, 1.0], 1.0, 10, [3, 10]), "n_index must be between 1 and 9"),
        (lambda: exact_moments([0.0, 1.0], 1.0, 1, 1), "n must be at least 2"),
        (lambda: single_moments([0.0, 1.0], 1.0, 0), "n must be at least 1"),
        (lambda: ensemble_moments([0.0, 1.0], 1.0, 10, 11), "k must be between 2 and 10, not 11"),
        (lambda: ensemble_moments([0.0, 1.0], 1.0, [5, 5, 5], 2), r"one per arm \(2\), not 3"),
        (lambda: exact_moments([0.0, 1.0], 1.0, 10, 2.5), "n_index must be a whole number, not 2.5"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_the_order_statistics_of_one_member_and_of_one_arm_are_known():
    means, errors = [0.3, 0.0, 0.2], [0.5, 0.4, 1.0]
    alone, known = order_moments(means, errors, 1, 1), max_moments(means, errors)
    for mine, other in zip(alone, known, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9)
    # The larger of two standard normals has the mean 1/√π, and its square the mean 1.
    larger, smaller = (order_moments([5.0], 2.0, 2, index) for index in (2, 1))
    assert larger.bias == pytest.approx(2 / np.sqrt(np.pi)) == pytest.approx(-smaller.bias)
    assert larger.mse == pytest.approx(4.0) == pytest.approx(smaller.mse)
    assert larger.selection == pytest.approx([1.0])


@pytest.mark.parametrize(("members", "index"), [(3, 4), (3, 0), (0, 1)])
def test_an_order_statistic_that_does_not_exist_is_refused(members, index):
    with pytest.raises(ValueError, match="must be"):
        order_moments([0.0, 1.0], 1.0, members, index)


def test_order_moments_need_errors():
    with pytest.raises(ValueError, match="positive errors"):
        order_moments([0.0, 1.0], 0.0, 2, 1)
