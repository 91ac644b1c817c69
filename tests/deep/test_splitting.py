import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.deep.splitting import adaptive_split, split_errors
from ebql.estimators.moments import exact_moments


@settings(deadline=None)
@given(st.integers(3, 8), st.integers(2, 4), st.floats(0.01, 10), st.integers(0, 2**31 - 1))
def test_the_errors_are_those_of_the_estimators_floor_for_the_two_best_actions(
    n_members, n_actions, scale, seed
):
    q = scale * np.random.default_rng(seed).normal(size=(n_members, n_actions))
    best = q.mean(0).argsort()[::-1][:2]
    means, stds = q.mean(0)[best], q.std(0, ddof=1)[best]
    exact = exact_moments(means, stds, n_members, np.arange(1, n_members)).mse
    np.testing.assert_allclose(split_errors(torch.from_numpy(q)[None])[0], exact, rtol=1e-9)


def rows(mean_gap, spread, n_members=10):
    """Members around two actions `mean_gap` apart, their spreads the same."""
    noise = spread * torch.linspace(-1, 1, n_members)
    return torch.stack([noise + mean_gap, noise.flip(0)], -1)[None]


def test_a_gap_as_large_as_the_spread_wants_more_selectors_than_none_or_a_huge_one():
    none, middle, huge = (int(adaptive_split(rows(gap, 1.0))) for gap in (0.0, 0.6, 100.0))
    assert none == huge == 1
    assert middle > 1


def test_members_that_agree_and_single_actions_are_no_trouble():
    assert adaptive_split(torch.ones(3, 4, 2)).tolist() == [1, 1, 1]
    assert adaptive_split(rows(1.0, 0.0)).tolist() == [1]
    assert adaptive_split(torch.randn(2, 4, 1)).tolist() == [1, 1]
