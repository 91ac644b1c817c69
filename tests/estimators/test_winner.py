from functools import cache, partial

import numpy as np
import pytest

from ebql.estimators import correct_winner, ensemble_moments, max_moments, optimal_ensemble_size

ALIKE = (0.0,) * 6
ONE_AHEAD = (0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
GRADED = (0.3, 0.2, 0.1, 0.0)


@cache
def many_winners(means):
    """Winners of 150 experiments whose sample means have a standard error of 0.18."""
    data, splits, n = np.random.default_rng(0), np.random.default_rng(1), 12
    draw = partial(data.normal, np.array(means)[:, None], 0.18 * n**0.5, (len(means), n))
    return [correct_winner(draw(), splits, splits=3) for _ in range(150)]


def mean_of(winners, field):
    naive, corrected = (
        np.mean([getattr(getattr(w, kind), field) for w in winners]) for kind in ("naive", "corrected")
    )
    return naive, corrected


def test_the_correction_removes_the_optimisers_curse_and_its_interval_covers():
    winners = many_winners(ALIKE)
    naive, corrected = mean_of(winners, "estimate")
    assert naive > 0.2  # the largest of six sample means, all with a true mean of 0
    assert abs(corrected) < 0.2 * naive
    assert np.mean([w.corrected.low <= 0 <= w.corrected.high for w in winners]) > 0.95
    assert np.mean([w.naive.low <= 0 <= w.naive.high for w in winners]) < 0.93
    # The expected bias is positive, but too small; without shrinkage it would be less than half of this.
    assert 0.12 < mean_of(winners, "bias")[0] < naive


@pytest.mark.parametrize("means", [ONE_AHEAD, GRADED])
def test_between_arms_with_gaps_the_correction_leans_low(means):
    winners = many_winners(means)
    naive, corrected = (estimate - max(means) for estimate in mean_of(winners, "estimate"))
    assert corrected < -0.03 < naive
    expected_naive, expected_corrected = mean_of(winners, "bias")
    assert expected_naive == pytest.approx(naive, abs=0.12)
    assert expected_corrected == pytest.approx(corrected, abs=0.12)


def test_the_advice_depends_on_the_gaps():
    def naive_errs_less(means):
        return np.mean([w.naive.rmse < w.corrected.rmse for w in many_winners(means)])

    assert naive_errs_less(ALIKE) < 0.5
    assert naive_errs_less(ONE_AHEAD) > 0.7


def uneven_arms(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(0.6, 1.0, 40), rng.normal(0.0, 2.0, 90), rng.normal(0.3, 0.5, 25)]


def test_the_ensemble_is_the_best_one_and_the_theory_uses_shrunken_means():
    arms = uneven_arms(seed=3)
    means, counts = np.array([arm.mean() for arm in arms]), [40, 90, 25]
    stds = np.array([np.std(arm, ddof=1) for arm in arms])
    errors = stds / np.sqrt(counts)
    # Computed independently: keep only the variance of the means that their standard errors do not explain.
    variance = means.var(ddof=1)
    likely = means.mean() + (means - means.mean()) * (1 - (errors**2).mean() / variance) ** 0.5
    assert likely.var(ddof=1) == pytest.approx(variance - (errors**2).mean())

    winner = correct_winner(arms, np.random.default_rng(0), splits=3)
    assert winner.ensemble_size == optimal_ensemble_size(likely, stds, counts)
    assert winner.ensemble_size > 2
    for value, k in ((winner.double, 2), (winner.corrected, winner.ensemble_size)):
        moments = ensemble_moments(likely, stds, counts, k)
        assert value.standard_error == pytest.approx(moments.variance**0.5)
        assert (value.bias, value.rmse) == pytest.approx((moments.bias, moments.mse**0.5))
        assert value.high - value.estimate == pytest.approx(1.959964 * value.standard_error)
        assert value.low + value.high == pytest.approx(2 * value.estimate)
    largest = max_moments(likely, errors)
    assert (winner.naive.bias, winner.naive.rmse) == pytest.approx((largest.bias, largest.mse**0.5))
    assert winner.naive.standard_error == pytest.approx(errors[winner.index])


def test_means_that_vary_less_than_their_errors_explain_count_as_alike():
    rng = np.random.default_rng(5)
    arms = [
        arm - arm.mean() + shift for arm, shift in zip(rng.normal(size=(3, 20)), [0, 0.01, 0.02], strict=True)
    ]
    winner = correct_winner(arms, rng, splits=3)
    assert winner.corrected.bias == 0
    assert winner.ensemble_size == 20


def test_an_ensemble_of_two_is_the_double():
    winner = correct_winner(uneven_arms(seed=1), np.random.default_rng(0), splits=3)
    assert winner.ensemble_size == 2
    assert winner.corrected == winner.double


def test_one_arm_or_arms_without_spread_need_no_correction():
    alone = correct_winner([[1.0, 2.0, 3.0]], np.random.default_rng(0), splits=3)
    assert (alone.naive.bias, alone.corrected.bias) == pytest.approx((0, 0), abs=1e-12)
    known = correct_winner([[1.0, 1.0], [2.0, 2.0]], np.random.default_rng(0), splits=3)
    assert known.naive == known.corrected == (2.0, 0.0, 2.0, 2.0, 0.0, 0.0)


def test_many_splits_agree_with_each_other():
    arms = list(np.random.default_rng(2).normal([[1.0], [1.1]], 1.0, (2, 200)))
    first, second = (correct_winner(arms, np.random.default_rng(s), splits=200) for s in (0, 1))
    assert abs(first.corrected.estimate - second.corrected.estimate) < 0.1 * first.corrected.standard_error
    assert first.votes.sum() == pytest.approx(1)


def test_a_clear_winner_is_left_alone():
    rng = np.random.default_rng(3)
    winner = correct_winner([rng.normal(0, 1, 50), rng.normal(50, 1, 80)], rng, splits=10)
    assert winner.index == 1
    assert winner.corrected.estimate == pytest.approx(winner.naive.estimate, abs=1e-10)
    np.testing.assert_array_equal(winner.votes, [0, 1])


@pytest.mark.parametrize("arms", [[], [[1.0, 2.0], [1.0]], [[1.0, 2.0], []]])
def test_every_arm_needs_two_samples(arms):
    with pytest.raises(ValueError, match="at least 2 samples"):
        correct_winner(arms, np.random.default_rng(0))


@pytest.mark.parametrize("rng", [None, 7])
def test_splits_need_a_generator(rng):
    with pytest.raises(TypeError, match="rng must be a numpy.random.Generator"):
        correct_winner([[1.0, 2.0], [1.0, 2.0]], rng)
