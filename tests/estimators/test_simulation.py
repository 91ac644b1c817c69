import numpy as np
import pytest

from ebql.estimators import MaxEstimate, double, error_intervals, gaussian, simulate, single


def exponential(rng, batch, n):
    return rng.exponential(np.array([1.0, 2.0])[:, None], (batch, 2, n))


def test_any_sampler_with_its_largest_mean_will_do():
    simulated = simulate(distribution=exponential, n=10, estimator=double, max_mean=2.0, replications=20_000)
    assert simulated.bias.high < 0
    assert simulated.mse.value == pytest.approx(simulated.variance.value + simulated.bias.value**2, rel=1e-6)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    # One arm, one estimator: bias 0, variance = mse = σ²/n = 0.5. 400 intervals at 80%.
    arm = gaussian([3.0], 1.0)
    runs = [simulate(arm, 2, single, replications=500, seed=seed, confidence=0.8) for seed in range(400)]
    for name, truth in (("bias", 0.0), ("variance", 0.5), ("mse", 0.5)):
        covered = np.mean([getattr(run, name).low <= truth <= getattr(run, name).high for run in runs])
        assert covered == pytest.approx(0.8, abs=4.5 * (0.8 * 0.2 / 400) ** 0.5 + 0.01), name


def test_the_interval_estimates_its_spread_without_bias():
    def zero_and_one(rng, batch, n):
        return np.arange(batch, dtype=float)[:, None, None] * np.ones((1, 1, n))

    found = simulate(zero_and_one, 3, single, max_mean=0.0, replications=2)
    # The errors 0 and 1 have the variance ½, divided by one; their mean has ½ / 2.
    assert found.bias.high - found.bias.value == pytest.approx(1.959964 * 0.5)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    arms = gaussian([0.0, 0.1], 1.0)
    first, again, other = (simulate(arms, 6, double, replications=1_000, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_replications_are_drawn_in_batches_of_bounded_size():
    batches = []

    def sampler(rng, batch, n):
        batches.append(batch)
        return rng.standard_normal((batch, 2, n))

    simulate(sampler, 50_000, single, max_mean=0.0, replications=45)
    assert max(batches) * 2 * 50_000 <= 2_000_000
    assert sum(batches) == 45 + 1  # one draw to learn the number of arms


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(exponential, 10, double), "pass max_mean"),
        (lambda: simulate(gaussian([0.0], 1.0), 0, single), "n must be at least 1"),
        (
            lambda: simulate(gaussian([0.0], 1.0), 2, single, replications=1),
            "replications must be at least 2",
        ),
        (lambda: simulate(gaussian([0.0], 1.0), 2, single, confidence=1.0), "confidence must lie between"),
        (
            lambda: simulate(lambda rng, b, n: rng.random((b, n)), 2, single, max_mean=0.5),
            "sampler must return the shape",
        ),
        (lambda: simulate(exponential, 2, single, max_mean=np.nan), "max_mean must be a number.*, not nan"),
        (lambda: simulate(exponential, 2, single, max_mean=1e200), r"max_mean must be .*, not 1e\+200"),
        (
            lambda: simulate(exponential, 2, lambda s: MaxEstimate(s[:, 0, 0] * np.nan, 0), max_mean=2.0),
            "estimates contain NaN",
        ),
        (lambda: gaussian([0.0, 1.0], -1.0), "must not be negative"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_intervals_of_given_errors():
    bias, variance, mse = error_intervals(np.array([1.0, 3.0, 5.0]))
    half = 1.959963984540054 / 3**0.5  # times the standard deviation over the errors
    assert bias == pytest.approx((3.0, 3 - 2 * half, 3 + 2 * half))
    squares = np.std([4.0, 0.0, 4.0], ddof=1) * half
    assert variance == pytest.approx((8 / 3, 8 / 3 - squares, 8 / 3 + squares))
    assert mse.value == pytest.approx(35 / 3)
