import numpy as np
import pytest
from scipy.stats import norm

from ebql.estimators.winner.rates import Angles, RatePosterior, angles
from ebql.estimators.winner.shrinkage import Posterior


def test_angles_are_those_of_anscombe():
    found = angles(np.array([20.0, 100.0]), np.array([0.5, 0.1]))
    assert found.means == pytest.approx([np.pi / 4, np.arcsin(np.sqrt(10.375 / 100.75))])
    assert found.errors == pytest.approx([0.5 / np.sqrt(20.5), 0.5 / np.sqrt(100.5)])


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
def test_the_error_of_an_angle_does_not_depend_on_the_rate(rate):
    drawn = np.random.default_rng(0).binomial(200, rate, 100_000) / 200
    assert angles(200, drawn).means.std() == pytest.approx(0.5 / np.sqrt(200.5), rel=0.02)


def test_moments_of_the_rate_are_those_of_drawn_angles():
    # Two components with weights 1/4 and 3/4.
    belief = Posterior(np.array([0.25, 0.75]), np.array([0.4, 0.6]), np.array([0.01, 0.04]))
    rng = np.random.default_rng(1)
    which = rng.random(400_000) < 0.25
    phi = np.where(which, rng.normal(0.4, 0.1, which.size), rng.normal(0.6, 0.2, which.size))
    rate = RatePosterior(belief)
    assert rate.mean() == pytest.approx((np.sin(phi) ** 2).mean(), abs=1e-3)
    assert rate.variance() == pytest.approx((np.sin(phi) ** 2).var(), rel=0.01)


def test_the_interval_is_that_of_the_angle_and_stays_a_rate():
    belief = Posterior(np.ones(1), np.array([0.1]), np.array([0.01]))
    low, high = RatePosterior(belief).interval(0.95)
    assert low == 0.0  # the angle's own end is below 0
    assert high == pytest.approx(np.sin(0.1 + 0.1 * norm.ppf(0.975)) ** 2)


def test_a_certain_angle_is_a_certain_rate():
    belief = RatePosterior(Posterior(np.ones(1), np.array([np.pi / 6]), np.zeros(1)))
    assert (belief.mean(), belief.variance()) == (pytest.approx(0.25), pytest.approx(0.0, abs=1e-12))
    assert isinstance(angles(5, np.zeros(2)), Angles)
