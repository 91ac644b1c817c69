import numpy as np
import pytest

from ebql.estimators import ensemble_moments, exact_moments, optimal_ensemble_size, optimal_split
from ebql.estimators.split import _least

SNR_GRID = np.geomspace(1e-3, 1e3, 61)


def two_arms(snr, n, std):
    """Means whose gap is `snr` standard errors of an n-sample mean."""
    return [0.0, -snr * std / n**0.5]


@pytest.mark.parametrize("n", [12, 20, 64, 200])
@pytest.mark.parametrize("std", [0.1, 0.5, 4.0])
def test_proposition_2_3_fewer_than_half_of_the_samples_should_select(n, std):
    for snr in SNR_GRID:
        split = optimal_split(two_arms(snr, n, std), std, n)
        assert split.n_index < n / 2
        assert split.mse < exact_moments(two_arms(snr, n, std), std, n, n // 2).mse


@pytest.mark.parametrize(("std", "n_index"), [(1.0, 38), (0.5, 52), (0.1, 78)])
def test_proposition_2_3_needs_equal_spreads(std, n_index):
    means, stds = [0.3, 0.0], [std, 1.0]
    split = optimal_split(means, stds, 100)
    assert split.n_index == n_index
    assert (split.n_index > 50) == (split.mse < exact_moments(means, stds, 100, np.arange(1, 51)).mse.min())


@pytest.mark.parametrize("n", [12, 100, 1000])
def test_proposition_2_1_and_2_one_sample_selects_when_arms_are_far_apart_or_alike(n):
    for snr in (100 * n**0.5, 1e6):
        assert optimal_split(two_arms(snr, n, 0.5), 0.5, n).n_index == 1
    for snr in (0.0, 1e-6, 1e-2):
        assert optimal_split(two_arms(snr, n, 0.5), 0.5, n).n_index == 1
    between = optimal_split(two_arms(3.0, n, 0.5), 0.5, n)
    assert between.n_index > 1
    # The proof's bound on any minimiser: ceil(0.405 N).
    assert between.n_index <= np.ceil(0.406 * n)


@pytest.mark.parametrize("n", [700, 5_000, 40_000])
def test_the_coarse_to_fine_search_finds_what_an_exhaustive_one_finds(n):
    everything = np.arange(1, n)
    for snr in np.geomspace(0.1, 100 * n**0.5, 40):
        means = two_arms(snr, n, 1.0)
        mse = exact_moments(means, 1.0, n, everything).mse
        split = optimal_split(means, 1.0, n)
        assert (split.n_index, split.mse) == (everything[mse.argmin()], mse.min())


@pytest.mark.parametrize("deeper", [1, 40, 7_000, 999_999])
def test_the_search_takes_the_deepest_of_several_minima(deeper):
    dips = np.array([1, 40, 7_000, 999_999])

    def error(n_index):
        distance = abs(np.log(n_index[:, None] / dips))
        return (distance - 0.5 * (dips == deeper)).min(axis=-1)

    assert _least(error, 1, 999_999) == (deeper, -0.5)


def test_the_search_handles_gaps_of_two_scales():
    n = 1200
    for near in (1e-3, 3e-2, 0.1):
        means = [0.0, -near, -1.0]
        mse = exact_moments(means, 1.0, n, np.arange(1, n)).mse
        assert optimal_split(means, 1.0, n).n_index == mse.argmin() + 1


@pytest.mark.parametrize("n", [100, 1_000_000_000])
def test_the_ensemble_size_stands_for_the_split(n):
    for snr in (0.0, 1.0, 3.0, 10.0):
        split = optimal_split(two_arms(snr, n, 1.0), 1.0, n)
        assert split.ensemble_size >= 2
        assert abs(split.ensemble_size - n / split.n_index) < 1


def test_two_samples_leave_no_choice():
    assert optimal_split([0.0, 1.0], 1.0, 2)[:2] == (1, 2)
    assert optimal_ensemble_size([0.0, 1.0], 1.0, 2) == 2


@pytest.mark.parametrize("n", [50, 2_000])
def test_the_best_ensemble_size_is_the_best_of_all(n):
    for snr in (0.0, 1.5, 3.0, 6.0, 20.0, 300.0):
        means = two_arms(snr, n, 1.0)
        everything = ensemble_moments(means, 1.0, n, np.arange(2, n + 1)).mse
        best = optimal_ensemble_size(means, 1.0, n)
        assert ensemble_moments(means, 1.0, n, best).mse <= everything.min() * (1 + 1e-5)


def test_the_best_ensemble_size_of_unequal_arms():
    counts, means, stds = [40, 90, 25], [0.0, 0.3, 0.5], [1.0, 2.0, 0.5]
    everything = ensemble_moments(means, stds, counts, np.arange(2, 26)).mse
    assert optimal_ensemble_size(means, stds, counts) == everything.argmin() + 2


def test_bad_input_is_one_clear_line():
    with pytest.raises(ValueError, match="n must be at least 2"):
        optimal_split([0.0, 1.0], 1.0, 1)
    with pytest.raises(ValueError, match="must not be negative"):
        optimal_split([0.0, 1.0], -1.0, 10)
