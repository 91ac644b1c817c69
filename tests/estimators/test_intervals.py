import numpy as np
import pytest
from scipy import stats

from ebql.estimators.intervals import interval_ends, over_seeds


def test_the_interval_is_students():
    values = np.random.default_rng(0).normal(size=(12, 3))
    estimate = over_seeds(values)
    for column in range(3):
        low, high = stats.t.interval(0.95, 11, values[:, column].mean(), stats.sem(values[:, column]))
        assert estimate.mean[column] - estimate.half_width[column] == pytest.approx(low)
        assert estimate.mean[column] + estimate.half_width[column] == pytest.approx(high)


def test_one_seed_says_nothing_of_the_next():
    assert np.isinf(over_seeds(np.ones((1, 2))).half_width).all()


def test_an_infinite_interval_has_no_ends():
    assert interval_ends(1.0, 0.5) == (0.5, 1.5)
    assert interval_ends(1.0, np.inf) == (None, None)
