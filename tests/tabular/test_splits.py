import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ebql.estimators import exact_moments, optimal_split
from ebql.tabular import reference
from ebql.tabular.splits import best_split, split_error, two_best

GAPS = st.sampled_from([0.0, 0.01, 0.3, 1.0, 5.0])
STDS = st.sampled_from([0.0, 0.2, 1.0, 3.0])


@settings(deadline=None, max_examples=60)
@given(GAPS, STDS, STDS, st.integers(3, 12))
def test_the_error_of_every_split_is_the_exact_one(gap, best_std, other_std, size):
    n_index = np.arange(1, size)
    exact = exact_moments([gap, 0.0], [best_std, other_std], size, n_index).mse
    found = [split_error(gap, best_std**2, other_std**2, size, int(n)) for n in n_index]
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-15)


def with_moments(means, stds, size):
    """Values `(K, A)` whose means and unbiased deviations over members are exactly the given ones."""
    pattern = np.linspace(-1, 1, size)
    pattern /= pattern.std(ddof=1)
    return np.asarray(means) + pattern[:, None] * np.asarray(stds)


@pytest.mark.parametrize("gap", [0.05, 0.2, 0.5, 0.9, 1.5, 4.0])
@pytest.mark.parametrize("stds", [(1.0, 1.0), (0.1, 1.0), (1.0, 0.1)])
def test_the_chosen_split_is_the_estimators_optimal_one(gap, stds):
    # The decoys, a hopeless action that all see differently and one in between, must not count.
    q = with_moments([-9.0, 0.0, gap, -8.0], [7.0, stds[1], stds[0], 0.0], 12)
    assert best_split(q) == optimal_split([gap, 0.0], stds, 12).n_index


def test_numbers_by_hand():
    # Means 1 and 0.5, both of variance 1: 3 members of which n select.
    q = np.array([[0.0, -0.5, -9.0], [1.0, 0.5, -9.0], [2.0, 1.5, -9.0]])
    assert two_best(q) == (0.5, 1.0, 1.0)
    # n = 1: 1/2 + 0.25 Φ(-0.5/√2) = 0.5905; n = 2: 1 + 0.25 Φ(-0.5) = 1.0771.
    assert split_error(0.5, 1.0, 1.0, 3, 1) == pytest.approx(0.5 + 0.25 * 0.361837, abs=1e-6)
    assert split_error(0.5, 1.0, 1.0, 3, 2) == pytest.approx(1.0 + 0.25 * 0.308538, abs=1e-6)
    assert best_split(q) == 1


def test_a_costly_mistake_asks_for_more_selectors_than_a_cheap_or_an_unlikely_one():
    chosen = [best_split(with_moments([gap, 0.0], [1.0, 1.0], 20)) for gap in (0.01, 0.7, 8.0)]
    assert chosen[0] == chosen[2] == 1
    assert chosen[1] > 3


def test_nothing_known_or_nothing_to_choose_asks_for_one_selector():
    assert best_split(np.zeros((5, 4))) == 1
    assert best_split(np.arange(5.0)[:, None]) == 1
    assert best_split(np.tile([3.0, 1.0], (5, 1))) == 1


@settings(deadline=None, max_examples=60)
@given(hnp.arrays(float, st.tuples(st.integers(3, 8), st.integers(1, 5)), elements=st.floats(-9, 9)))
def test_the_plain_statement_agrees(q):
    assert best_split(q) == reference.best_split(q.tolist())
