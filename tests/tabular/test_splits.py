import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ebql.estimators import exact_moments, optimal_split
from ebql.tabular import reference
from ebql.tabular.splits import best_split, likely_gaps, split_error


def _shrunken(means, errors):
    """Shrink means (m,) towards their average until their variance is that of the true means.

    The variance of sample means is that of the true means plus that of their `errors`.
    """
    centre = means.mean()
    total = ((means - centre) ** 2).sum()
    noise = (errors**2).mean() * (means.size - 1)
    return centre + (np.sqrt(1 - noise / total) if total > noise else 0.0) * (means - centre)


GAPS = st.sampled_from([0.0, 0.01, 0.3, 1.0, 5.0])
STDS = st.sampled_from([0.0, 0.2, 1.0, 3.0])


@settings(deadline=None, max_examples=60)
@given(GAPS, STDS, STDS, st.integers(3, 12))
def test_for_two_arms_the_error_of_every_split_is_the_exact_one(gap, best_std, other_std, size):
    n_index = np.arange(1, size)
    exact = exact_moments([gap, 0.0], [best_std, other_std], size, n_index).mse
    gaps, variances = np.array([0.0, gap]), np.array([best_std, other_std]) ** 2
    found = [split_error(gaps, variances, size, int(n)) for n in n_index]
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("arms", [3, 4, 8])
@pytest.mark.parametrize("gap", [0.2, 0.7, 1.5, 3.0])
def test_for_more_arms_the_product_chooses_a_split_that_errs_hardly_more_than_the_best(arms, gap):
    gaps = np.append(0.0, np.linspace(gap, 2 * gap, arms - 1))
    exact = exact_moments(-gaps, 1.0, 12, np.arange(1, 12)).mse
    chosen = min(range(1, 12), key=lambda n: split_error(gaps, np.ones(arms), 12, n))
    assert exact[chosen - 1] <= 1.1 * exact.min()


def with_moments(means, stds, size):
    """Values `(K, A)` whose means and unbiased deviations over members are exactly the given ones."""
    pattern = np.linspace(-1, 1, size)
    pattern /= pattern.std(ddof=1)
    return np.asarray(means) + pattern[:, None] * np.asarray(stds)


@pytest.mark.parametrize("gap", [0.05, 0.2, 0.5, 0.9, 1.5, 4.0])
@pytest.mark.parametrize("stds", [(1.0, 1.0), (0.1, 1.0), (1.0, 0.1)])
def test_the_chosen_split_is_the_estimators_optimal_one_for_the_likely_gap(gap, stds):
    q = with_moments([0.0, gap], stds[::-1], 12)
    means = _shrunken(np.array([gap, 0.0]), np.array(stds) / np.sqrt(12))
    assert best_split(q) == optimal_split(means, stds, 12).n_index


@settings(deadline=None, max_examples=60)
@given(hnp.arrays(float, st.tuples(st.integers(3, 8), st.integers(2, 5)), elements=st.floats(-9, 9)))
def test_gaps_are_shrunken_by_the_variance_of_their_errors(q):
    gaps, variances = likely_gaps(q)
    means = q.mean(0)
    if np.ptp(means) > 1e-6:
        shrunken = _shrunken(means, q.std(0, ddof=1) / np.sqrt(len(q)))
        np.testing.assert_allclose(gaps, shrunken.max() - shrunken, atol=1e-6)
    np.testing.assert_allclose(variances, q.var(0, ddof=1), atol=1e-9)


def test_numbers_by_hand():
    # Means 1, 0 and -1, each of variance 0.25 over 3 members: their squares about 0 sum to 2, and errors of
    # variance 0.25 / 3 in 3 means make 2 * 0.25 / 3 of it, so √(11/12) of every gap is kept.
    q = np.array([[0.5, -0.5, -1.5], [1.0, 0.0, -1.0], [1.5, 0.5, -0.5]])
    gaps, variances = likely_gaps(q)
    np.testing.assert_allclose(gaps, np.sqrt(11 / 12) * np.array([0, 1, 2]))
    np.testing.assert_allclose(variances, 0.25)
    # Two arms 0.5 apart, variance 1: n = 1 gives 1/2 + 0.25 Φ(-0.5/√2), n = 2 gives 1 + 0.25 Φ(-0.5).
    gaps, ones = np.array([0.0, 0.5]), np.ones(2)
    assert split_error(gaps, ones, 3, 1) == pytest.approx(0.5 + 0.25 * 0.361837, abs=1e-6)
    assert split_error(gaps, ones, 3, 2) == pytest.approx(1.0 + 0.25 * 0.308538, abs=1e-6)


def test_a_costly_mistake_asks_for_more_selectors_than_a_cheap_or_an_unlikely_one():
    chosen = [best_split(with_moments([gap, 0.0], [1.0, 1.0], 20)) for gap in (0.01, 0.9, 8.0)]
    assert chosen[0] == chosen[2] == 1
    assert chosen[1] > 3


def test_nothing_known_or_nothing_to_choose_asks_for_one_selector():
    assert best_split(np.zeros((5, 4))) == 1
    assert best_split(np.arange(5.0)[:, None]) == 1
    assert best_split(np.tile([3.0, 1.0], (5, 1))) == 1


@settings(deadline=None, max_examples=60)
@given(hnp.arrays(float, st.tuples(st.integers(3, 8), st.integers(1, 5)), elements=st.integers(-9, 9)))
def test_the_plain_statement_agrees(q):
    assert best_split(q) == reference.best_split(q.tolist())
