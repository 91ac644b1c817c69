import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ebql.analysis import comparisons
from ebql.analysis.comparisons import (
    paired_difference,
    performance_profile,
    probability_of_improvement,
    rank_correlation,
)
from ebql.errors import InputError

columns = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=6).map(np.array)
pairs = st.lists(st.tuples(columns, columns), min_size=1, max_size=4)


def test_the_probability_of_improvement_by_hand():
    # Of 2 × 3 pairs: 1 beats 0, 5 beats all three, 1 ties with 1; in the other world none is won.
    mine = [np.array([1.0, 5.0]), np.array([0.0])]
    theirs = [np.array([0.0, 1.0, 2.0]), np.array([9.0, 9.0])]
    assert probability_of_improvement(mine, theirs).value == pytest.approx((4.5 / 6 + 0) / 2)


@given(pairs)
def test_it_is_mann_whitneys_share_and_the_two_sides_sum_to_one(both):
    mine, theirs = [x for x, _ in both], [y for _, y in both]
    expected = np.mean([stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in both])
    found = probability_of_improvement(mine, theirs, replicates=20)
    assert found.value == pytest.approx(expected)
    assert probability_of_improvement(theirs, mine, replicates=20).value == pytest.approx(1 - expected)
    if found.known:
        assert -1e-12 <= found.low <= found.high <= 1 + 1e-12


def test_its_replicates_draw_both_agents():
    # The share of fives drawn is binomial, of 5 draws at 3/5: P(0) = 0.010, P(≤ 1) = 0.087, P(≤ 4) = 0.92.
    mine, theirs = [np.array([0.0, 0.0, 5.0, 5.0, 5.0])], [np.ones(5)]
    assert probability_of_improvement(mine, theirs) == pytest.approx((0.6, 0.2, 1))
    assert probability_of_improvement(theirs, mine) == pytest.approx((0.4, 0, 0.8))
    assert probability_of_improvement([np.full(5, 2.0)], theirs) == (1, 1, 1)


def test_agents_in_different_worlds_are_refused():
    with pytest.raises(InputError, match="share environments"):
        probability_of_improvement([np.ones(2)], [np.ones(2)] * 2)


def test_a_profile_by_hand():
    # In the first world one run of five, drawn none to three times, scores 1; in the other all do.
    scores = [np.array([0.0, 0.0, 0.0, 0.0, 1.0]), np.ones(5)]
    profile = performance_profile(scores, [-1.0, 0.0, 0.5, 1.0])
    assert profile.share.tolist() == pytest.approx([1, 0.6, 0.6, 0])
    assert profile.low.tolist() == pytest.approx([1, 0.5, 0.5, 0])
    assert profile.high.tolist() == pytest.approx([1, 0.8, 0.8, 0])


@given(st.lists(columns, min_size=1, max_size=4))
def test_a_profile_falls_from_one_to_zero(scores):
    profile = performance_profile(scores, np.linspace(-4, 4, 9), replicates=20)
    assert profile.share[0] == pytest.approx(1)
    assert profile.share[-1] == 0
    assert (np.diff(profile.share) <= 1e-12).all()


def test_pairs_cancel_what_a_seed_does_to_both():
    seeds = dict(enumerate(np.random.default_rng(0).normal(0, 100, size=8)))
    better = {seed: score + 1 for seed, score in seeds.items()}
    threes, zeros = dict.fromkeys(range(5), 3.0), dict.fromkeys(range(5), 0.0)
    found = paired_difference([better, threes | {7: 9.0}], [seeds, zeros | {5: -99.0}])
    assert found == pytest.approx((2, 2, 2))


def test_few_pairs_have_no_interval_however_many_seeds_each_agent_has():
    mine, theirs = dict.fromkeys(range(9), 3.0), dict.fromkeys(range(5, 14), 1.0)
    found = paired_difference([mine], [theirs])
    assert found.value == 2
    assert not found.known


def test_pairs_without_a_seed_in_common_are_refused():
    with pytest.raises(InputError, match="at least one seed"):
        paired_difference([{0: 1.0}], [{1: 1.0}])


def test_the_rank_correlation_is_spearmans_within_each_environment():
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=9).round(1), 100 + rng.normal(size=5)]
    ys = [x + rng.normal(size=len(x)).round(1) for x in xs]
    found = rank_correlation(xs, ys)
    expected = [stats.spearmanr(x, y).statistic for x, y in zip(xs, ys, strict=True)]
    assert found.within == pytest.approx(expected)
    assert found.mean == pytest.approx(np.mean(expected))


def test_the_interval_of_a_rank_correlation_by_hand():
    order = np.array([0.0, 1, 2, 3, 4, 6, 5])  # ρ = 1 − 6 · 2 / (7 · 48) = 0.964; clipped to 1 − 1/7
    found = rank_correlation([np.arange(7.0)] * 2, [order, order[::-1]])
    assert found.mean == pytest.approx(0)
    # The variance of each is (1 − ρ²)² (1 + ρ²/2) / (7 − 3) with ρ = ±6/7, that of their mean half of it.
    rho = 6 / 7
    error = ((1 - rho**2) ** 2 * (1 + rho**2 / 2) / 4 / 2) ** 0.5
    assert (found.low, found.high) == pytest.approx(np.tanh([-1.959964 * error, 1.959964 * error]))


def test_few_runs_have_a_correlation_without_an_interval():
    found = rank_correlation([np.arange(4.0), np.arange(9.0)], [np.arange(4.0), np.arange(9.0)])
    assert np.isnan([found.low, found.high]).all()


def test_the_interval_of_paired_differences_is_students():
    rng = np.random.default_rng(0)
    seeds = rng.normal(scale=100, size=6)  # what a seed does to both agents
    gain = rng.normal(size=6)
    found = paired_difference([dict(enumerate(seeds + gain))], [dict(enumerate(seeds))])
    expected = stats.ttest_1samp(gain, 0).confidence_interval()
    assert found[1:] == pytest.approx(tuple(expected))


def test_the_p_value_is_the_share_of_permutations(monkeypatch):
    # Of 3! orders in each of two worlds, (1/6)² agree fully and as many disagree fully.
    monkeypatch.setattr(comparisons, "_CHUNK", 3000)
    found = rank_correlation([np.arange(3.0)] * 2, [np.arange(3.0)] * 2, permutations=40_000)
    assert found.mean == pytest.approx(1)
    assert found.p_value == pytest.approx(2 / 36, abs=0.005)


def test_a_p_value_is_never_0():
    # None of nine permutations of a hundred runs is as far out as the data, which are the tenth.
    found = rank_correlation([np.arange(100.0)], [np.arange(100.0)], permutations=9)
    assert found.p_value == 1 / 10


def test_what_never_varies_has_no_correlation():
    one = rank_correlation([np.ones(3), np.arange(3.0)], [np.arange(3.0)] * 2, permutations=10)
    assert np.isnan(one.within[0])
    assert one.mean == pytest.approx(1)
    none = rank_correlation([np.ones(3)], [np.arange(3.0)], permutations=10)
    assert np.isnan(none.mean)
