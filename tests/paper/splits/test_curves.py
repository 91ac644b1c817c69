import numpy as np
import pytest

from ebql.estimators import ensemble_moments, exact_moments
from ebql.paper.splits.curves import SAMPLES, best_splits, split_curves


def test_figure_1_agrees_with_its_own_simulation_and_with_the_paper():
    heard = []
    curves = split_curves(heard.append, points=9, replications=4000)
    assert len(heard) == len(curves)
    off = np.concatenate(
        [(c.simulated_mse - c.mse[c.simulated_n_index - 1]) / (c.simulated_half_width / 1.96) for c in curves]
    )
    assert np.abs(off).max() < 5
    assert np.mean(np.abs(off) < 1.96) > 0.85
    for curve in curves:
        assert curve.best < SAMPLES / 2
        errors = [float(exact_moments([curve.gap, 0], 0.5, SAMPLES, n).mse) for n in range(1, SAMPLES)]
        assert curve.best == 1 + int(np.argmin(errors))


def test_figure_2_stays_below_the_even_split():
    results = best_splits(lambda _: None, points=13)
    assert [r.arms for r in results] == [2, 4, 6]
    for result in results:
        assert result.n_index.max() < SAMPLES / 2
        assert result.ensemble_size.min() > 2
        assert result.n_index[0] == 1  # indiscernible arms


def test_a_point_of_figure_2_by_itself():
    """Four arms evenly over Δ = normalised gap · σ √m, σ² = 0.25."""
    result = best_splits(lambda _: None, points=4)[1]
    gap = result.normalized_gap[2]
    assert gap == pytest.approx(1.0)
    means = [0, 1 / 3, 2 / 3, 1]  # Δ = 1 · 0.5 · √4
    errors = exact_moments(means, 0.5, SAMPLES, np.arange(1, SAMPLES)).mse
    assert result.n_index[2] == 1 + errors.argmin()
    by_size = ensemble_moments(means, 0.5, SAMPLES, np.arange(2, SAMPLES + 1)).mse
    assert result.gain[2] == pytest.approx(1 - by_size[1:].min() / by_size[0])
    assert result.gain[2] > 0
