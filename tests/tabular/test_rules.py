import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import norm

from ebql.estimators import ensemble as ensemble_estimator
from ebql.estimators import weighted_double as split_estimator
from ebql.tabular.rules import (
    Rule,
    adaptive_order,
    argmax,
    backup_weight,
    bootstrap,
    candidates,
    clipped_double,
    cross,
    ensemble,
    k_estimator,
    maximum,
    maxmin,
    mean_maximum,
    order,
    quick_normal,
    robust_mean,
    self_correcting,
    smoothed,
    speedy,
    split,
    subset_minimum,
    t_estimator,
    weighted,
    weighted_double,
)

RNG = np.random.default_rng(0)

# Decoys: member 0 selects action 1. Its own value there (50), the other members' values elsewhere (90..99),
# and their own best actions must not matter: only 4 and 6 count.
Q = np.array(
    [
        [10.0, 50.0, 20.0],
        [99.0, 4.0, 98.0],
        [97.0, 6.0, 90.0],
    ]
)


def test_the_member_selects_and_only_the_others_evaluate():
    assert ensemble(Q, 0, RNG) == (4.0 + 6.0) / 2


def test_each_member_selects_for_itself():
    assert ensemble(Q, 1, RNG) == (10.0 + 97.0) / 2
    assert ensemble(Q, 2, RNG) == (10.0 + 99.0) / 2


def test_two_members_are_double_q_learning():
    assert ensemble(Q[:2], 0, RNG) == 4.0
    assert ensemble(Q[:2], 1, RNG) == 10.0


def test_q_learning_selects_and_evaluates_with_the_same_table():
    assert maximum(Q[:1], 0, RNG) == 50.0


def test_ensemble_q_learning_takes_the_best_mean_and_not_the_mean_of_the_best():
    # Means are 206/3, 60/3 and 208/3; the largest single values would give (50 + 99 + 97) / 3.
    assert mean_maximum(Q) == 208.0 / 3


def test_maxmin_takes_the_best_of_the_worst():
    # The minima over members are 10, 4 and 20.
    assert maxmin(Q) == 20.0
    assert maxmin(Q[1:]) == 97.0


def test_weighted_double_mixes_by_what_the_other_sees_between_best_and_worst():
    # Member 0: best action 1, worst 0. The other gives 4 and 99 there: β = 95 / (5 + 95).
    assert weighted_double(Q[:2], 0, 5.0, RNG) == 0.95 * 50.0 + (1 - 0.95) * 4.0
    # Member 1: best action 0, worst 1. The other gives 10 and 50 there: β = 40 / (10 + 40).
    assert weighted_double(Q[:2], 1, 10.0, RNG) == pytest.approx(0.8 * 99.0 + 0.2 * 10.0)
    assert weighted_double(Q[:2], 0, 1e15, RNG) == pytest.approx(ensemble(Q[:2], 0, RNG))
    assert weighted_double(Q[:2], 0, 1e-15, RNG) == pytest.approx(maximum(Q, 0, RNG))


def test_clipped_double_believes_the_lower_of_the_two_at_the_members_action():
    assert clipped_double(Q[:2], 0, RNG) == 4.0
    assert clipped_double(Q[:2], 1, RNG) == 10.0
    lower = np.array([[10.0, 50.0], [0.0, 70.0]])
    assert clipped_double(lower, 0, RNG) == 50.0  # here the member itself is the lower one


def test_cross_asks_each_of_the_others_equally_often_and_never_the_member():
    answers = [cross(Q, 1, RNG) for _ in range(2000)]  # action 0
    assert set(answers) == {10.0, 97.0}
    assert abs(answers.count(10.0) - 1000) < 5 * np.sqrt(500)
    assert {cross(Q, 0, RNG) for _ in range(50)} == {4.0, 6.0}
    assert {cross(Q, 2, RNG) for _ in range(50)} == {10.0, 99.0}


def test_redq_draws_each_subset_of_its_size_equally_often():
    answers = [subset_minimum(Q, 2, RNG) for _ in range(3000)]
    # Without member 0: 97; without 1: 20 (minima 10, 6, 20); without 2: 20 (minima 10, 4, 20).
    assert set(answers) == {97.0, 20.0}
    assert abs(answers.count(97.0) - 1000) < 5 * np.sqrt(3000 * 2 / 9)
    assert subset_minimum(Q, 3, RNG) == maxmin(Q)
    assert {subset_minimum(Q, 1, RNG) for _ in range(50)} == {50.0, 99.0, 97.0}


def test_sunrise_trusts_less_where_members_disagree_on_the_members_action():
    # Member 0 takes action 1, whose values are 50, 4 and 6: mean 20, variance (900 + 256 + 196) / 3.
    spread = np.sqrt(1352 / 3)
    assert backup_weight(Q, 0, 0.1, RNG) == pytest.approx(0.5 + 1 / (1 + np.exp(0.1 * spread)))
    assert backup_weight(Q, 0, 0.0, RNG) == 1.0
    assert backup_weight(np.ones((3, 2)), 0, 50.0, RNG) == 1.0


def test_self_correcting_selects_by_the_past_and_evaluates_by_the_present():
    latest, before = [5.0, 4.0, 1.0], [1.0, 3.0, 2.5]
    q = np.array([latest, before])
    assert self_correcting(q, 0.0, RNG) == 5.0  # Q-learning
    assert self_correcting(q, 1.0, RNG) == 4.0  # selects by the table before
    assert self_correcting(q, 3.0, RNG) == 1.0  # -7, 1, 5.5


def test_speedy_adds_the_newest_change_in_full():
    # max now 5, before 3. By the paper's form a step of 0.25 from Q = 7 with reward 1 leads to
    # 7 + 0.25 (1 + 3 - 7) + 0.75 (5 - 3) = 7.75; by ours to 7 + 0.25 (1 + value - 7).
    q = np.array([[5.0, 4.0], [1.0, 3.0]])
    assert 7 + 0.25 * (1 + speedy(q, 0.25) - 7) == 7.75
    assert speedy(q, 1.0) == 3.0
    assert np.isfinite(speedy(q, 0.0))


def test_the_weighted_estimator_weighs_actions_by_their_chance_to_be_best():
    # Means 4 and 2 with standard errors √2/√2 and √8/√2: P(first) = Φ(2 / √5). The third has no chance.
    q = np.array([[5.0, 4.0, -90.0], [3.0, 0.0, -92.0]])
    first = norm.cdf(2 / np.sqrt(5))
    assert weighted(q) == pytest.approx(4 * first + 2 * (1 - first), abs=0.005)
    assert weighted(np.array([[7.0, 7.0, 3.0]] * 2)) == 7.0  # known exactly
    assert weighted(q[:, :1]) == 4.0


def test_quick_normal_is_near_the_normal_distribution():
    for z in np.linspace(-9, 9, 1000):
        assert quick_normal(z) == pytest.approx(norm.cdf(z), abs=3e-7)
    assert quick_normal(-np.inf) == 0.0
    assert quick_normal(np.inf) == 1.0


# The variances over members are 2, 8 and 2: member 0's actions are 0, -4/√10 and -4 standard errors below its
# best. Member 1 has its own: its actions are 0, -6/√10 and -2.
TESTED_Q = np.array([[10.0, 6.0, 2.0], [8.0, 2.0, 4.0]])


def test_the_t_estimator_averages_what_the_test_keeps():
    assert t_estimator(TESTED_Q, 0, 0.05, RNG) == (10 + 6) / 2
    assert t_estimator(TESTED_Q, 1, 0.025, RNG) == (8 + 2) / 2  # Φ(-6/√10) = 0.029, Φ(-2) = 0.023
    assert t_estimator(TESTED_Q, 0, 1e-9, RNG) == (10 + 6 + 2) / 3
    assert t_estimator(TESTED_Q, 0, 0.5, RNG) == 10.0


def test_the_k_estimator_weighs_by_the_kernel():
    weights = norm.cdf(np.array([0.0, -4 / np.sqrt(10), -4.0]) / 2)
    assert k_estimator(TESTED_Q, 0, 2.0, RNG) == pytest.approx(weights @ TESTED_Q[0] / weights.sum())
    assert (
        k_estimator(np.array([[3.0, 1.0]] * 2), 0, 9.0, RNG) == 3.0
    )  # without variance the best one counts alone


def test_order_takes_the_best_of_an_order_statistic():
    # The members in order of size: 10 97 99, 4 6 50, 20 90 98.
    assert [order(Q, index) for index in (1, 2, 3)] == [20.0, 97.0, 99.0]


def test_the_adaptive_order_rises_with_the_agreement_of_the_members():
    # Five members, most of whom select action 1, the best in the mean: c of 5, so the index is (5 + c) / 4.
    agreed = np.array([[0.0, 10], [1, 20], [2, 30], [3, 40], [4, 50]])
    assert adaptive_order(agreed) == 30.0  # c = 5: the third, the median
    two_differ = np.array([[60.0, 10], [61, 20], [2, 90], [3, 91], [4, 92]])
    assert adaptive_order(two_differ) == 20.0  # c = 3: the second; of action 0 it is 3
    none_agrees = np.array([[9.0, 0, 8], [0, 9, 8], [9, 0, 8], [0, 9, 8]])
    assert adaptive_order(none_agrees) == 8.0  # c = 0: the first, as in Maxmin


def test_the_robust_mean_is_the_ensembles_maximum_less_its_radius():
    assert robust_mean(Q, 9.0) == 208.0 / 3 - 3.0


def test_the_other_names_candidates_and_the_own_maximum_is_the_limit():
    # Member 1's best two are 0 and 2, of which member 0 prefers 2; 98 there is more than its own maximum.
    assert candidates(Q[:2], 0, 2, RNG) == 50.0
    # Member 0's best two are 1 and 2, of which member 1 prefers 2.
    assert candidates(Q[:2], 1, 2, RNG) == 20.0
    assert candidates(Q[:2], 1, 9, RNG) == 10.0  # all actions: as in double Q-learning, but clipped


def test_smoothing_moves_weight_from_the_maximum_to_the_rest():
    assert smoothed(Q, 0, 0.2) == pytest.approx(0.8 * 50 + 0.2 * (10 + 20) / 2)
    assert smoothed(Q, 0, 0.0) == 50.0
    assert smoothed(Q[:, :1], 0, 0.7) == 10.0


# With two of four selecting, members 2 and 3 select action 2 for member 2 (sums 3, 9, 10), although each
# of them prefers another one. The evaluators 0 and 1 have the values 40 and 60 there.
SPLIT_Q = np.array(
    [
        [0.0, 0.0, 40.0],
        [99.0, 98.0, 60.0],
        [1.0, 7.0, 5.0],
        [8.0, 2.0, 5.0],
    ]
)


def test_selectors_select_together_and_only_the_rest_evaluates():
    assert split(SPLIT_Q, 2, 2, RNG) == (40.0 + 60.0) / 2
    # Member 3's cyclic order is 3, 0, 1, 2: sums 8, 2, 45, so 1 and 2 evaluate action 2.
    assert split(SPLIT_Q, 3, 2, RNG) == (60.0 + 5.0) / 2
    assert split(SPLIT_Q, 2, 3, RNG) == 60.0  # 2, 3, 0 sum to 9, 9, 50


@settings(deadline=None)
@given(hnp.arrays(float, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.integers(-9, 9)))
def test_one_selector_is_ebql_and_any_number_the_split_estimator(q):
    q = q + np.linspace(0, 0.1, q.size).reshape(q.shape) ** 2  # no ties
    assert split(q, 0, 1, RNG) == pytest.approx(ensemble(q, 0, RNG), abs=1e-12)
    for n_index in range(1, len(q)):
        assert split(q, 0, n_index, RNG) == pytest.approx(split_estimator(q.T, n_index).value, abs=1e-12)


def test_each_rule_is_found_by_its_number():
    two = Q[:2]
    assert bootstrap(Rule.MAXIMUM, 0.0, 0.5, Q, 0, RNG) == maximum(Q, 0, RNG)
    assert bootstrap(Rule.ENSEMBLE, 0.0, 0.5, Q, 0, RNG) == ensemble(Q, 0, RNG)
    assert bootstrap(Rule.MEAN, 0.0, 0.5, Q, 0, RNG) == mean_maximum(Q)
    assert bootstrap(Rule.AVERAGED, 0.0, 0.5, Q, 0, RNG) == mean_maximum(Q)
    assert bootstrap(Rule.MAXMIN, 0.0, 0.5, Q, 0, RNG) == maxmin(Q)
    assert bootstrap(Rule.WEIGHTED_DOUBLE, 2.0, 0.5, two, 0, RNG) == weighted_double(two, 0, 2.0, RNG)
    assert bootstrap(Rule.CLIPPED_DOUBLE, 0.0, 0.5, two, 1, RNG) == clipped_double(two, 1, RNG)
    assert bootstrap(Rule.CROSS, 0.0, 0.5, two, 1, RNG) == cross(two, 1, RNG)
    assert bootstrap(Rule.SUBSET_MINIMUM, 3.0, 0.5, Q, 0, RNG) == maxmin(Q)
    assert bootstrap(Rule.SUNRISE, 9.0, 0.5, Q, 1, RNG) == 99.0
    assert bootstrap(Rule.SELF_CORRECTING, 1.0, 0.5, two, 0, RNG) == self_correcting(two, 1.0, RNG)
    assert bootstrap(Rule.SPEEDY, 0.0, 0.5, two, 0, RNG) == speedy(two, 0.5)
    assert bootstrap(Rule.SPLIT, 2.0, 0.5, SPLIT_Q, 2, RNG) == 50.0
    assert bootstrap(Rule.ADAPTIVE_SPLIT, 3.0, 0.5, SPLIT_Q, 2, RNG) == 60.0
    assert bootstrap(Rule.WEIGHTED, 0.0, 0.5, Q, 2, RNG) == weighted(Q)
    assert bootstrap(Rule.T_ESTIMATOR, 0.05, 0.5, TESTED_Q, 0, RNG) == 8.0
    assert bootstrap(Rule.K_ESTIMATOR, 2.0, 0.5, TESTED_Q, 0, RNG) == k_estimator(TESTED_Q, 0, 2.0, RNG)
    assert bootstrap(Rule.ORDER, 2.0, 0.5, Q, 0, RNG) == 97.0
    assert bootstrap(Rule.ROBUST_MEAN, 9.0, 0.5, Q, 0, RNG) == 208.0 / 3 - 3.0
    assert bootstrap(Rule.CANDIDATES, 2.0, 0.5, two, 1, RNG) == 20.0
    assert bootstrap(Rule.SMOOTHED, 0.2, 0.5, Q, 0, RNG) == smoothed(Q, 0, 0.2)


@given(hnp.arrays(float, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.floats(-9, 9)))
def test_the_rule_is_the_ensemble_estimator_of_one_sample_each(q):
    if np.sum(q[0] == q[0].max()) > 1:
        return  # The estimator takes the first of tied arms, the rule any of them.
    assert ensemble(q, 0, RNG) == pytest.approx(ensemble_estimator(q.T, len(q)).value, abs=1e-12)


def test_argmax_breaks_ties_evenly_and_never_picks_less():
    values = np.array([3.0, 1.0, 3.0, 3.0, 2.0])
    picks = np.bincount([argmax(values, RNG) for _ in range(6000)], minlength=5)
    assert picks[1] == picks[4] == 0
    assert np.all(np.abs(picks[[0, 2, 3]] - 2000) < 5 * np.sqrt(6000 * 2 / 9))
