from functools import cache

import numpy as np
import pytest

from ebql.errors import InputError
from ebql.estimators import correct_winner, ensemble
from ebql.estimators.winner import Arms, winner_of
from ebql.estimators.winner.answer import averaged_splits

RUNS = 200


@cache
def many_winners(world, m=5, n=100):
    """Winners of tests with arms of standard error 0.1, and the true means of the winners."""
    rng, winners, truths = np.random.default_rng(7), [], []
    for _ in range(RUNS):
        theta = {"alike": np.zeros(m), "spread": rng.normal(0, 0.15, m)}[world]
        means = theta + rng.normal(0, 0.1, m)
        stds = np.sqrt(rng.chisquare(n - 1, m) / (n - 1))
        winner = winner_of(Arms.from_moments(np.full(m, n), means, stds))
        winners.append(winner)
        truths.append(theta[winner.index])
    return winners, np.array(truths)


def true_rmse(winners, truths, method):
    errors = np.array([getattr(w, method).estimate for w in winners]) - truths
    return np.mean(errors**2) ** 0.5


def told_rmse(winners, method):
    return np.mean([getattr(w, method).rmse ** 2 for w in winners]) ** 0.5


@pytest.mark.parametrize("method", ["naive", "split", "ensemble", "shrinkage"])
def test_the_error_told_is_the_error_of_that_estimate(method):
    winners, truths = many_winners("spread")
    # An RMSE over 200 runs has a standard error of 5%.
    assert told_rmse(winners, method) == pytest.approx(true_rmse(winners, truths, method), rel=0.18)


def test_where_all_arms_are_alike_the_ensembles_are_not_told_the_error_of_a_single_split():
    winners, truths = many_winners("alike")
    # One half of the samples has an error of 0.14. The errors told are somewhat too large, because five
    # arms can't prove that they are alike.
    for method in ("split", "ensemble", "shrinkage"):
        true, told = true_rmse(winners, truths, method), told_rmse(winners, method)
        assert 0.9 * true < told < 1.6 * true < 0.14


def test_five_equal_arms_are_never_given_their_naive_mean():
    winners, truths = many_winners("alike")
    assert {w.recommended for w in winners} == {"shrinkage"}
    assert true_rmse(winners, truths, "shrinkage") < 0.08 < 0.12 < true_rmse(winners, truths, "naive")
    # And what is told says so in nearly every test.
    assert np.mean([w.shrinkage.rmse < w.naive.rmse for w in winners]) > 0.99


@pytest.mark.parametrize("world", ["alike", "spread"])
def test_the_interval_covers(world):
    winners, truths = many_winners(world)
    covered = np.mean([w.interval.low <= t <= w.interval.high for w, t in zip(winners, truths, strict=True)])
    assert covered > 0.95 - 4 * 0.0155


def test_rates_are_not_answered_by_the_grand_mean_nor_by_a_huge_ensemble():
    winner = winner_of(Arms.from_successes([3000] * 4, [150, 155, 160, 190]))
    grand_mean = (150 + 155 + 160 + 190) / 12_000
    assert grand_mean + 0.001 < winner.estimate.estimate < 190 / 3000
    assert winner.arms.binary
    assert 0 <= winner.interval.low < winner.estimate.estimate < winner.interval.high <= 1


def test_averaged_splits_are_the_average_of_real_splits():
    rng = np.random.default_rng(0)
    arms = list(rng.normal([[0.0], [0.1], [0.3]], 1.0, (3, 60)))
    means, errors = np.array([(a.mean(), a.std(ddof=1) / 60**0.5) for a in arms]).T
    for k in (2, 5):
        drawn = [float(ensemble(arms, k, rng, rotate=True).value) for _ in range(600)]
        error = np.std(drawn) / len(drawn) ** 0.5
        # 59 / 60 degrees of freedom and finite samples: allow 1% of a standard error of the mean.
        assert averaged_splits(means, errors, k) == pytest.approx(np.mean(drawn), abs=4 * error + 0.002)


def test_two_equal_arms_have_a_hand_computed_split():
    # x = (0, 0), s = 1, K = 2: E[max of two standard normals] = 1 / √π, so the split is 0 - 1 / √π.
    split = averaged_splits(np.zeros(2), np.ones(2), 2)
    assert split == pytest.approx(-(np.pi**-0.5), abs=1e-9)


def test_a_clear_winner_keeps_its_mean():
    winner = winner_of(Arms.from_moments([100] * 8, [9.0, *np.linspace(0, 0.2, 7)], [1.0] * 8))
    assert winner.stands_apart
    assert winner.recommended == "naive"
    assert (winner.estimate.estimate, winner.estimate.rmse) == pytest.approx((9.0, 0.1))
    assert (winner.interval.low, winner.interval.high) == pytest.approx((8.8, 9.2), abs=0.01)


def test_the_lift_has_the_difference_and_an_interval_of_its_own():
    arms = Arms.from_moments([400] * 3, [1.0, 3.0, 0.0], [1.0, 2.0, 1.0], ["A", "B", "C"])
    winner = winner_of(arms, control="A")
    assert winner.lift.estimate == pytest.approx(2.0, abs=0.02)
    half = 1.97 * (0.05**2 + 0.1**2) ** 0.5
    assert winner.lift.interval == pytest.approx((2 - half, 2 + half), abs=0.01)
    assert winner_of(arms, control="B").lift is None
    with pytest.raises(InputError, match="no arm 'Z'; the arms are A, B, C"):
        winner_of(arms, control="Z")


def test_the_lifts_interval_covers_the_lift_of_the_arm_that_won():
    rng, covered, runs = np.random.default_rng(2), [], 150
    for _ in range(runs):
        means = rng.normal(0, 0.1, 4)
        arms = Arms.from_moments([100] * 4, means, [1.0] * 4, list("ABCD"))
        winner = winner_of(arms, control="A")
        if winner.lift is not None:
            covered.append(winner.lift.interval.low <= 0 <= winner.lift.interval.high)
    assert np.mean(covered) > 0.95 - 4 * 0.021


def test_samples_give_the_same_answer_as_their_summary_and_draw_nothing():
    samples = np.random.default_rng(3).normal(size=(3, 50))
    first, second = correct_winner(samples), correct_winner(samples, np.random.default_rng(5), splits=7)
    assert first.estimate == second.estimate
    summary = winner_of(Arms.from_moments([50] * 3, samples.mean(1), samples.std(1, ddof=1)))
    assert summary.interval == pytest.approx(first.interval)
    assert first.naive.estimate == samples.mean(1).max()


def test_arms_without_spread_or_without_conversions_have_an_answer():
    known = correct_winner([[1.0, 1.0], [2.5, 2.5]])
    assert known.estimate.estimate == pytest.approx(2.5)
    assert known.interval == pytest.approx((2.5, 2.5), abs=1e-6)
    none = winner_of(Arms.from_successes([50] * 3, [0, 0, 0]))
    assert none.interval.low == 0
    assert 0.03 < none.interval.high < 0.15


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
        correct_winner([[1.0, 2.0], [1.0, 2.0]], confidence=1.5)
    with pytest.raises(TypeError, match="rng must be a numpy.random.Generator"):
        correct_winner([[1.0, 2.0], [1.0, 2.0]], 7)
    with pytest.raises(ValueError, match="at least 2 arms"):
        correct_winner([[1.0, 2.0]])
    with pytest.raises(ValueError, match="at least 2 samples"):
        correct_winner([[1.0, 2.0], [1.0]])
