import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ebql.analysis import statistics
from ebql.analysis.statistics import difference, estimate, iqm, mean, median, optimality_gap
from ebql.errors import InputError
from ebql.estimators.intervals import FEWEST_SEEDS


def point(statistic, *scores):
    return estimate([np.asarray(x, float) for x in scores], statistic, replicates=10).value


def test_the_aggregates_by_hand():
    # 8 runs in order: 0 0.1 | 0.2 0.4 0.6 0.7 | 1.4 3; means of environments 0.825 and 0.775.
    scores = ([0.0, 0.1, 0.2, 3.0], [0.4, 0.6, 0.7, 1.4])
    assert point(iqm, *scores) == pytest.approx(1.9 / 4)
    assert point(mean, *scores) == pytest.approx((0.825 + 0.775) / 2)
    assert point(optimality_gap, *scores) == pytest.approx((1 + 0.9 + 0.8 + 0 + 0.6 + 0.4 + 0.3 + 0) / 8)
    assert point(median, [0.0, 2.0], [5.0, 5.0], [-3.0, 0.0]) == 1  # of the means 1, 5, -1.5


def test_an_environment_weighs_the_same_however_many_seeds_it_has():
    ragged = ([0.0, 0.0, 0.0, 0.0], [1.0])
    assert point(mean, *ragged) == 0.5
    assert point(optimality_gap, *ragged) == 0.5
    # Weights 1 1 1 1 4 of 8: a quarter is two of the zeros below, and not the whole of the one above.
    assert point(iqm, *ragged) == pytest.approx(4 / 6)


def test_a_quarter_that_is_no_whole_number_of_runs_is_rounded_down():
    assert point(iqm, [1.0, 2.0, 100.0]) == pytest.approx(103 / 3)
    assert point(iqm, [-50.0, 1.0, 2.0, 4.0, 100.0]) == pytest.approx(7 / 3)


matrices = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    elements=st.floats(-3, 3, allow_subnormal=False) | st.sampled_from([0.0, 1.0]),
)


@given(matrices)
def test_of_a_full_matrix_the_iqm_is_scipys_trimmed_mean(matrix):
    assert point(iqm, *matrix.T) == pytest.approx(stats.trim_mean(matrix, 0.25, axis=None), abs=1e-12)


@given(matrices, st.randoms(use_true_random=False))
def test_the_order_of_seeds_and_environments_does_not_matter(matrix, random):
    ragged = [column[: 1 + i % len(column)] for i, column in enumerate(matrix.T)]
    shuffled = [np.array(random.sample(column.tolist(), len(column))) for column in ragged]
    random.shuffle(shuffled)
    for statistic in (iqm, mean, median, optimality_gap):
        assert point(statistic, *shuffled) == pytest.approx(point(statistic, *ragged), abs=1e-12)


@given(matrices)
def test_estimates_and_intervals_stay_within_the_scores(matrix):
    for statistic in (iqm, mean, median):
        found = estimate(list(matrix.T), statistic, replicates=50)
        assert matrix.min() - 1e-12 <= found.value <= matrix.max() + 1e-12
        if len(matrix) >= FEWEST_SEEDS:
            assert matrix.min() - 1e-12 <= found.low <= found.high <= matrix.max() + 1e-12


def test_replicates_in_counts_are_replicates_of_runs():
    scores = [np.array([3.0, 1.0, 2.0]), np.array([5.0, 4.0, 6.0, 0.0])]
    counts = [np.array([[2, 0, 1], [0, 3, 0]]), np.array([[1, 1, 1, 1], [0, 0, 2, 2]])]
    for row in range(2):
        repeated = [np.repeat(x, c[row]) for x, c in zip(scores, counts, strict=True)]
        for statistic in (iqm, mean, median, optimality_gap):
            assert statistic(scores, counts)[row] == pytest.approx(point(statistic, *repeated))


def test_the_interval_of_a_mean_is_the_exact_bootstraps():
    # How often the 1 is drawn is binomial, of 5 draws at 1/5: P(0) = 0.33, P(≤ 2) = 0.942, P(≤ 3) = 0.993.
    assert estimate([np.array([0.0, 0.0, 0.0, 0.0, 1.0])], mean) == pytest.approx((0.2, 0, 0.6))
    scores = np.random.default_rng(3).normal(size=400)
    found = estimate([scores], mean, replicates=20_000)
    deviation = scores.std() / np.sqrt(400)
    assert found.low == pytest.approx(scores.mean() - 1.96 * deviation, abs=0.05 * deviation)
    assert found.high == pytest.approx(scores.mean() + 1.96 * deviation, abs=0.05 * deviation)


def test_the_strata_are_kept():
    # Seeds agree within environments, so drawing them anew changes nothing: the worlds' spread stays out.
    assert estimate([np.zeros(6), np.full(5, 10.0)], mean) == (5, 5, 5)


def test_intervals_are_repeatable_and_the_same_in_chunks(monkeypatch):
    scores = [np.arange(6.0), np.arange(5.0) ** 2]
    first = estimate(scores, iqm, seed=1)
    assert estimate(scores, iqm, seed=1) == first
    assert estimate(scores, iqm, seed=2) != first
    monkeypatch.setattr(statistics, "_CHUNK", 70)
    in_chunks = estimate(scores, iqm, seed=1)
    assert in_chunks.low == pytest.approx(first.low, abs=0.3)
    assert in_chunks.value == first.value


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
def test_an_environment_with_few_seeds_leaves_no_interval(seeds):
    few = estimate([np.full(seeds, 1.0), np.arange(9.0)], mean)
    assert few.value == 2.5
    assert not few.known
    assert not few.excludes(0)
    assert estimate([np.ones(5), np.arange(9.0)], mean).known


def test_a_difference_is_as_unsure_as_the_agent_with_the_fewest_seeds():
    few, enough = [np.arange(2.0)], [np.arange(5.0)]
    assert difference(few, enough, mean).value == -1.5
    assert not difference(few, enough, mean).known
    assert not difference(enough, few, mean).known


def test_a_difference_draws_both_agents():
    mine, theirs = [np.array([3.0, 3.0, 4.0, 5.0, 5.0])], [np.array([0.0, 0.0, 1.0, 2.0, 2.0])]
    found = difference(mine, theirs, mean)
    assert found.value == 3
    # Each mean has a variance of 0.8 / 5; that of one agent alone would give 0.78.
    deviation = np.sqrt(2 * 0.8 / 5)
    assert (found.low, found.high) == pytest.approx((3 - 1.96 * deviation, 3 + 1.96 * deviation), abs=0.11)
    assert found.excludes(0)
    assert not found.excludes(3)


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([], "at least one environment"),
        ([[1.0], []], "environment 1 has an array of shape"),
        ([[[1.0]]], "shape"),
        ([[np.nan]], "not all finite"),
    ],
)
def test_scores_that_are_none_are_refused(scores, told):
    with pytest.raises(InputError, match=told):
        estimate([np.array(x) for x in scores], mean)


def test_settings_out_of_range_are_refused():
    one = [np.array([1.0, 2.0])]
    with pytest.raises(InputError, match="confidence"):
        estimate(one, mean, confidence=95)
    with pytest.raises(InputError, match="replicates"):
        estimate(one, mean, replicates=0)
    with pytest.raises(InputError, match="share environments"):
        difference(one, one * 2, mean)
