import numpy as np
import pytest

from ebql.estimators import correct_winner


def test_the_correction_removes_the_optimisers_curse_and_its_interval_covers():
    data, splits = np.random.default_rng(0), np.random.default_rng(1)
    winners = [correct_winner(data.normal(size=(6, 30)), splits, splits=5) for _ in range(150)]
    naive = np.mean([w.naive.estimate for w in winners])
    corrected = np.array([w.corrected.estimate for w in winners])
    assert naive > 0.2  # the largest of six means of 30 samples, all with a true mean of 0
    assert abs(corrected.mean()) < 0.2 * naive
    assert np.mean([w.corrected.low <= 0 <= w.corrected.high for w in winners]) > 0.95
    assert np.mean([w.naive.low <= 0 <= w.naive.high for w in winners]) < 0.93


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
