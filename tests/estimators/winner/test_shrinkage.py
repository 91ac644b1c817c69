import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from ebql.estimators.winner.shrinkage import Posterior, posterior, stands_apart


def by_quadrature(x, errors, arm):
    """The posterior mean and variance, by integration over B of two arms or more with equal errors s."""
    x, s, m = np.asarray(x), errors[0], len(x)
    mean, squares = x.mean(), ((x - np.mean(x)) ** 2).sum()

    def weight(b):  # likelihood of B after μ is integrated out
        return (b / s**2) ** ((m - 1) / 2) * np.exp(-b * squares / (2 * s**2))

    def moments(b):
        value = b * mean + (1 - b) * x[arm]
        return value, value**2 + (1 - b) * s**2 + b * s**2 / m

    def integral(f):
        inner = quad(lambda b: f(b) * weight(b) / (2 * b**0.5), 0, 1, epsabs=1e-12)[0]
        return 0.85 * inner + 0.15 * f(1.0) * weight(1.0)

    total = integral(lambda b: 1.0)
    first, second = (integral(lambda b, i=i: moments(b)[i]) / total for i in (0, 1))
    return first, second - first**2


@pytest.mark.parametrize("x", [[1.0, 0.0], [3.0, -1.0, 0.5], [0.2, 0.1, 0.0, -0.1, 2.5]])
def test_the_posterior_is_the_integral_over_the_spread_of_the_means(x):
    arm, errors = int(np.argmax(x)), np.full(len(x), 0.8)
    belief = posterior(np.array(x), errors, np.array(arm))
    mean, variance = by_quadrature(x, errors, arm)
    assert belief.mean() == pytest.approx(mean, abs=1e-3)
    assert belief.variance() == pytest.approx(variance, rel=3e-3)


def test_scale_and_shift_change_nothing_but_the_units():
    x, errors = np.array([1.0, 0.3, 0.0]), np.array([0.5, 0.4, 0.6])
    first = posterior(x, errors, np.array(0))
    other = posterior(100 * x + 7, 100 * errors, np.array(0))
    assert other.mean() == pytest.approx(100 * first.mean() + 7)
    assert other.variance() == pytest.approx(1e4 * first.variance())


def test_close_arms_are_shrunken_but_never_to_the_grand_mean_and_clear_differences_stay():
    errors = np.full(5, 1.0)
    close = np.array([0.4, 0.1, 0.0, -0.1, -0.4])
    assert close.mean() < posterior(close, errors, np.array(0)).mean() < 0.2
    clear = np.array([400.0, 300.0, 200.0, 100.0, 0.0])
    assert posterior(clear, errors, np.array(0)).mean() == pytest.approx(400, abs=0.05)


def test_a_batch_gives_what_its_rows_give():
    rng = np.random.default_rng(0)
    x, errors = rng.normal(size=(3, 4)), rng.uniform(0.5, 1, (3, 4))
    index = x.argmax(1)
    together = posterior(x, errors, index)
    low, high = together.interval(0.9)
    for row in range(3):
        alone = posterior(x[row], errors[row], index[row])
        assert together.mean()[row] == pytest.approx(alone.mean())
        np.testing.assert_allclose((low[row], high[row]), alone.interval(0.9))


def test_the_interval_has_equal_tails():
    two = Posterior(np.array([0.25, 0.75]), np.array([0.0, 1.0]), np.array([1.0, 4.0]))
    low, high = two.interval(0.95)
    for end, share in ((low, 0.025), (high, 0.975)):
        assert 0.25 * norm.cdf(end) + 0.75 * norm.cdf((end - 1) / 2) == pytest.approx(share, abs=1e-9)
    assert two.variance() == pytest.approx(0.25 * 1 + 0.75 * 4 + 0.25 * 0.75)


def test_the_winner_stands_apart_only_beyond_what_chance_allows():
    rng = np.random.default_rng(1)
    alike = rng.normal(size=(20_000, 10))
    errors = np.ones_like(alike)
    # At most 0.0005 by design (Bonferroni, and the noise of the others' mean): 4 standard errors are 0.0006.
    assert stands_apart(alike, errors, alike.argmax(1)).mean() < 0.0015
    ahead = alike + np.where(np.arange(10), 0.0, 9.0)
    assert stands_apart(ahead, errors, ahead.argmax(1)).mean() > 0.99
    few = np.array([100.0, 0.0, 0.1])
    assert not stands_apart(few, np.ones(3), np.array(0))


def test_arms_that_differ_anyway_do_not_stand_apart():
    evenly = np.arange(10.0) * 5
    assert not stands_apart(evenly, np.ones(10), np.array(9))
