import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from ebql.estimators.winner.conditional import (
    Ends,
    binomial_scores,
    conditional_interval,
    simultaneous_limit,
    student_scores,
)


def known_error(theta, y):
    return np.asarray(y) - theta


def interval(x, runner_up, m=2, confidence=0.95):
    x, limit = np.asarray(x, float), simultaneous_limit(m, confidence)
    return conditional_interval(
        x, np.asarray(runner_up, float), known_error, Ends(x - 9, x + 9), limit, confidence
    )


def test_the_limit_holds_all_arms_at_once():
    # Šidák: (2 Φ(c) - 1)^m = 1 - β, with β = 0.005.
    for m in (2, 50):
        assert (2 * ndtr(simultaneous_limit(m, 0.95)) - 1) ** m == pytest.approx(0.995, abs=1e-12)


def test_a_clear_winner_has_nearly_the_ordinary_interval():
    low, high = interval(10.0, 0.0, m=2)
    # Nothing is truncated: P(|Z| <= h) = 0.95 / 0.995 of P(|Z| <= c) = 0.995^(1/2).
    half = ndtri(0.5 + 0.5 * 0.95 / 0.995 * 0.995**0.5)
    assert (low, high) == pytest.approx((10 - half, 10 + half), abs=1e-9)
    assert half == pytest.approx(1.96, abs=0.03)


def test_the_ends_are_where_the_conditional_test_just_accepts():
    x, runner_up, limit, level = 1.0, 0.4, simultaneous_limit(5, 0.95), 0.95 / 0.995
    low, high = interval(x, runner_up, m=5)
    # Above x the region [2x - θ, ...] is not truncated, the repetitions are.
    accepted = (2 * ndtr(high - x) - 1) / (ndtr(limit) - ndtr(max(runner_up - high, -limit)))
    assert accepted == pytest.approx(level, abs=1e-9)
    # Below it is: only the scores from the runner-up to x count.
    accepted = (ndtr(x - low) - ndtr(runner_up - low)) / (ndtr(limit) - ndtr(runner_up - low))
    assert accepted == pytest.approx(level, abs=1e-9)


def test_a_tie_keeps_everything_below_down_to_the_simultaneous_interval_and_some_above():
    low, high = interval(1.0, 1.0, m=3)
    assert low == pytest.approx(1 - simultaneous_limit(3, 0.95), abs=1e-9)
    assert high > 2.5  # equal tails would give an interval that lies below 1


@pytest.mark.parametrize("m", [2, 10, 50])
@pytest.mark.parametrize("means", ["alike", "one ahead", "spread"])
def test_it_covers_the_winners_mean_whatever_the_means(m, means):
    rng, runs = np.random.default_rng(m), 20_000
    theta = {
        "alike": np.zeros(m),
        "one ahead": np.where(np.arange(m), 0.0, 2.0),
        "spread": np.linspace(0, 3, m),
    }[means]
    x = theta + rng.normal(size=(runs, m))
    index = x.argmax(1)
    ordered = np.sort(x, axis=1)
    low, high = interval(ordered[:, -1], ordered[:, -2], m=m)
    covered = np.mean((low <= theta[index]) & (theta[index] <= high))
    # The theorem: from 95% to 95 / 0.995 = 95.48%; four standard errors of 20,000 runs are 0.6%.
    assert 0.95 - 0.006 < covered < 0.9548 + 0.006


def test_scores_increase_and_are_standard_normal():
    student = student_scores(np.array(2.0), np.array(4.0))
    # The 97.5% quantile of Student's distribution with 4 degrees of freedom is 2.776445.
    assert student(np.array(1.0), np.array(1 + 2 * 2.776445)) == pytest.approx(1.959964, abs=1e-5)
    binomial = binomial_scores(np.array(40.0))
    shares = np.arange(41) / 40
    scores = binomial(np.array(0.3), shares)
    assert (np.diff(scores) > 0).all()
    draws = np.random.default_rng(0).binomial(40, 0.3, 50_000) / 40
    scores = binomial(np.array(0.3), draws)
    assert scores.mean() == pytest.approx(0, abs=0.02)
    assert scores.std() == pytest.approx(1, abs=0.03)
