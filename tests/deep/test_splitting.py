import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.deep.splitting import best_split, likely_gaps, split_errors
from ebql.estimators.moments import exact_moments


@settings(deadline=None)
@given(st.integers(3, 8), st.floats(0, 10), st.floats(0.01, 5), st.floats(0.01, 5))
def test_for_two_actions_the_errors_are_those_of_the_estimators_floor(n_members, gap, first, second):
    exact = exact_moments((gap, 0.0), (first, second), n_members, np.arange(1, n_members)).mse
    gaps, variances = torch.tensor([[0.0, gap]]), torch.tensor([[first**2, second**2]])
    errors = split_errors(gaps.double(), variances.double(), n_members)
    np.testing.assert_allclose(errors[0], exact, rtol=1e-5)


def rows(mean_gap, spread, n_members=10):
    """Members around two actions `mean_gap` apart, their spreads the same."""
    noise = spread * torch.linspace(-1, 1, n_members)
    return torch.stack([noise + mean_gap, noise.flip(0)], -1)[None]


def test_gaps_shrink_by_what_errors_alone_would_make_of_them():
    # Three members say (0, 3), (1, 5), (2, 7): means 1 and 5, variances 1 and 4.
    gaps, variances = likely_gaps(torch.tensor([[[0.0, 3.0], [1.0, 5.0], [2.0, 7.0]]]))
    # Squares about the average 3: 8; of errors: 2.5 / 3.
    expected = 4 * (1 - 2.5 / 3 / 8) ** 0.5
    torch.testing.assert_close(gaps, torch.tensor([[expected, 0.0]]))
    assert variances.tolist() == [[1.0, 4.0]]


def test_a_gap_as_large_as_the_spread_wants_more_selectors_than_none_or_a_huge_one():
    none, middle, huge = (int(best_split(rows(gap, 1.0))) for gap in (0.0, 0.8, 100.0))
    assert none == huge == 1
    assert middle > 1


def test_members_that_agree_and_single_actions_are_no_trouble():
    assert best_split(torch.ones(3, 4, 2)).tolist() == [1, 1, 1]
    assert best_split(rows(1.0, 0.0)).tolist() == [1]
    assert best_split(torch.randn(2, 4, 1)).tolist() == [1, 1]


@given(st.integers(3, 6), st.integers(1, 4), st.integers(0, 2**31 - 1))
def test_a_split_counts_legal_actions_only(n_members, n_legal, seed):
    q = torch.randn(8, n_members, n_legal, generator=torch.Generator().manual_seed(seed))
    decoys = torch.tensor([1e6, -1e6]).expand(8, n_members, 2)
    legal = torch.tensor([True] * n_legal + [False] * 2).expand(8, -1)
    assert best_split(torch.cat([q, decoys], -1), legal).tolist() == best_split(q).tolist()
