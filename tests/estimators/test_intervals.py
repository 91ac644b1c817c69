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


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
def test_below_five_seeds_there_is_a_mean_and_no_interval(seeds):
    values = np.arange(2.0 * seeds).reshape(seeds, 2)
    few = over_seeds(values)
    assert few.mean.tolist() == [seeds - 1, seeds]
    assert np.isinf(few.half_width).all()


def test_five_seeds_have_students_interval():
    # t of 4 degrees of freedom, from a printed table; the variance of 0 to 4 is 2.5.
    assert over_seeds(np.arange(5.0)).half_width == pytest.approx(2.7764 * np.sqrt(2.5 / 5), rel=1e-4)


def test_an_infinite_interval_has_no_ends():
    assert interval_ends(1.0, 0.5) == (0.5, 1.5)
    assert interval_ends(1.0, np.inf) == (None, None)
