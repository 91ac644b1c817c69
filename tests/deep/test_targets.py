"""Each rule against numbers worked out by hand, with decoys where a wrong role would look."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.deep.targets import (
    RULES,
    Next,
    adaptive_order,
    backup_weight,
    candidates,
    clipped_double,
    cross,
    double_q,
    ensemble_bootstrap,
    k_estimator,
    maxmin,
    mean_maximum,
    order,
    q_learning,
    robust_mean,
    sample_others,
    sample_subset,
    smoothed,
    split,
    steered_size,
    subset_minimum,
    t_estimator,
    weighted,
    weighted_double,
)

SEEDS = st.integers(0, 2**31 - 1)


def after(online, target, members=None, predictions=None, legal=None):
    """What is known of the next observation; lists are `(rows, K, A)`."""
    online = None if online is None else torch.as_tensor(online)
    target = torch.as_tensor(target)
    members = torch.arange(target.shape[1])[None] if members is None else torch.tensor(members)
    legal = None if legal is None else torch.tensor(legal)
    return Next(online, target, target if predictions is None else predictions, members, legal)


def random_next(n_members, n_actions, seed, rows=4):
    generator = torch.Generator().manual_seed(seed)
    return after(*torch.randn(2, rows, n_members, n_actions, generator=generator, dtype=torch.float64))


def test_q_learning_takes_the_target_maximum_of_each_member():
    assert q_learning(after(None, [[[2.0, 4.0], [8.0, 6.0]]])).tolist() == [[4.0, 8.0]]


def test_double_q_selects_online_and_evaluates_with_the_target():
    # The online maximum is at action 0 for member 0 and 2 for member 1; 99 is what anybody else selects.
    online = [[[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]]]
    target = [[[4.0, 99.0, 98.0], [99.0, 98.0, 6.0]]]
    assert double_q(after(online, target)).tolist() == [[4.0, 6.0]]


# Members 0, 1, 2 select actions 0, 1, 2.
SELECT_0_1_2 = [[[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]]]


def test_ensemble_bootstrap_leaves_the_selector_out_of_the_evaluation():
    # Each member's own target value of its action is a decoy.
    target = [[[99.0, 3.0, 5.0], [2.0, 98.0, 7.0], [4.0, 1.0, 97.0]]]
    assert ensemble_bootstrap(after(SELECT_0_1_2, target)).tolist() == [[3.0, 2.0, 6.0]]


def test_ensemble_bootstrap_selects_with_the_online_member_itself():
    # The target members all prefer action 1 (decoys); the online members prefer action 0.
    online, target = [[[1.0, 0.0], [1.0, 0.0]]], [[[3.0, 99.0], [5.0, 98.0]]]
    assert ensemble_bootstrap(after(online, target)).tolist() == [[5.0, 3.0]]


def test_a_split_selects_with_its_members_together_and_evaluates_with_the_rest():
    # Online, members 0 and 1 prefer actions 0 and 1, but together action 2; member 2 alone prefers 0.
    online = [[[4.0, 0.0, 3.0], [0.0, 4.0, 3.0], [9.0, 0.0, 0.0]]]
    # Members 0 and 1 select action 2 (7 by member 2); 1 and 2, and 2 and 0, action 0 (1, 2 by the rest).
    target = [[[1.0, 98.0, 97.0], [2.0, 96.0, 95.0], [94.0, 93.0, 7.0]]]
    assert split(after(online, target), torch.tensor([2])).tolist() == [[7.0, 1.0, 2.0]]


def test_each_row_may_be_split_otherwise():
    one = random_next(4, 3, seed=0)
    rows = [split(one, torch.tensor([n])) for n in (1, 2, 3, 1)]
    mixed = split(one, torch.tensor([1, 2, 3, 1]))
    for row in range(4):
        torch.testing.assert_close(mixed[row], rows[row][row])


def test_mean_maximum_averages_before_it_maximises():
    # Each member's own maximum is 9; of the mean it is 5, at the action that nobody likes best.
    target = [[[9.0, 5.0, 0.0], [0.0, 5.0, 9.0]]]
    assert mean_maximum(after(None, target)).tolist() == [[5.0, 5.0]]
    # One network that learns from K copies of its past.
    assert mean_maximum(after(None, target, members=[[0]])).tolist() == [[5.0]]


def test_maxmin_takes_the_least_before_it_maximises():
    target = [[[9.0, 4.0, 6.0], [1.0, 5.0, 3.0]]]
    assert maxmin(after(None, target)).tolist() == [[4.0, 4.0]]


def test_redq_looks_at_its_subset_only():
    target = [[[9.0, 4.0], [1.0, 5.0], [-99.0, -98.0]]]
    assert subset_minimum(after(None, target), torch.tensor([0, 1])).tolist() == [[4.0, 4.0, 4.0]]
    assert subset_minimum(after(None, target), torch.tensor([1])).tolist() == [[5.0, 5.0, 5.0]]


def test_clipped_double_takes_the_least_that_is_said_of_the_selected_action():
    # Member 0 selects action 0, member 1 action 1; -99 is the least of an action that nobody selects.
    online = [[[9.0, 0.0, 0.0], [0.0, 9.0, 0.0]]]
    target = [[[3.0, 8.0, -99.0], [4.0, 6.0, 99.0]]]
    assert clipped_double(after(online, target)).tolist() == [[3.0, 6.0]]


def test_cross_evaluates_with_the_member_that_was_drawn():
    target = [[[99.0, 3.0, 5.0], [2.0, 98.0, 7.0], [4.0, 1.0, 97.0]]]
    drawn = torch.tensor([[2, 0, 1]])
    assert cross(after(SELECT_0_1_2, target), drawn).tolist() == [[4.0, 3.0, 7.0]]


def test_weighted_double_weighs_by_the_gap_in_the_others_view():
    # Member 0: best action 0, worst 2; the other says 6 and 3, so d = 3 and β = 3 / (1 + 3).
    # Member 1: best action 1, worst 0; the other says 20 and 13, so d = 7 and β = 7 / 8.
    online = [[[9.0, 5.0, 0.0], [0.0, 9.0, 5.0]]]
    target = [[[13.0, 20.0, 99.0], [6.0, 4.0, 3.0]]]
    expected = [[0.75 * 13 + 0.25 * 6, 0.875 * 4 + 0.125 * 20]]
    torch.testing.assert_close(weighted_double(after(online, target), c=1.0), torch.tensor(expected))


def test_confidence_falls_with_the_spread_of_the_selected_action():
    # Both members select action 1, which the target members value at 1 and 5: spread 2. Action 0 is a decoy.
    online, target = [[[0.0, 9.0], [0.0, 9.0]]], [[[-50.0, 1.0], [50.0, 5.0]]]
    expected = 1 / (1 + torch.tensor(10.0 * 2).exp()).item() + 0.5
    assert backup_weight(after(online, target), temperature=10.0).tolist() == [[pytest.approx(expected)] * 2]
    agreed = after(online, [[[-50.0, 3.0], [50.0, 3.0]]])
    assert backup_weight(agreed, temperature=10.0).tolist() == [[1.0, 1.0]]


def test_weighted_double_looks_for_the_worst_action_among_the_legal_ones():
    # Action 2 is worst online and the others value it at −99, but it is illegal: the worst is action 1.
    online, target = [[[9.0, 5.0, 0.0], [9.0, 5.0, 0.0]]], [[[13.0, 20.0, -99.0], [6.0, 3.0, -99.0]]]
    # The others say 6 and 3, so d = 3 and β = 3 / 4; and 13 and 20, so d = 7 and β = 7 / 8.
    expected = [[0.75 * 13 + 0.25 * 6, 0.875 * 6 + 0.125 * 13]]
    one = after(online, target, legal=[[True, True, False]])
    torch.testing.assert_close(weighted_double(one, c=1.0), torch.tensor(expected))


# The variances over members are 2, 8 and 2: member 0's actions are 0, -4/√10 and -4 standard errors below its
# best, member 1's 0, -6/√10 and -2. The online values are decoys.
TESTED = [[[10.0, 6.0, 2.0], [8.0, 2.0, 4.0]]]
DECOYS = [[[99.0, -99.0, 98.0], [-98.0, 97.0, 96.0]]]


def test_the_t_estimator_averages_what_the_test_keeps():
    one = after(DECOYS, TESTED)
    assert t_estimator(one, 0.05).tolist() == [[8.0, 8.0]]  # Φ(-6/√10) = 0.029 and Φ(-2) = 0.023 are below
    assert t_estimator(one, 0.025).tolist() == [[8.0, 5.0]]
    assert t_estimator(one, 0.5).tolist() == [[10.0, 8.0]]
    # A test of the legal actions only: action 0 is not there to be compared with.
    assert t_estimator(after(DECOYS, TESTED, legal=[[False, True, True]]), 0.5).tolist() == [[6.0, 4.0]]


def test_the_k_estimator_weighs_by_the_kernel():
    weights = torch.special.ndtr(torch.tensor([0.0, -4 / 10**0.5, -4.0]) / 2)
    expected = (weights @ torch.tensor(TESTED[0][0]) / weights.sum()).item()
    assert k_estimator(after(DECOYS, TESTED), 2.0)[0, 0].item() == pytest.approx(expected)
    agreed = after(None, [[[3.0, 1.0], [3.0, 1.0]]])
    assert k_estimator(agreed, 9.0).tolist() == [[3.0, 3.0]]  # without variance the best one counts alone


def test_the_weighted_estimator_weighs_actions_by_their_chance_to_be_best():
    # Means 4 and 2 with standard errors 1 and 2: P(first) = Φ(2 / √5).
    target = [[[5.0, 4.0], [3.0, 0.0]]]
    first = torch.special.ndtr(torch.tensor(2 / 5**0.5)).item()
    assert weighted(after(None, target))[0].tolist() == [pytest.approx(2 + 2 * first, abs=0.005)] * 2
    assert weighted(after(None, [[[7.0, 7.0, 3.0]] * 2])).tolist() == [[7.0, 7.0]]


def test_order_takes_the_best_of_an_order_statistic():
    target = [[[9.0, 4.0, 6.0], [1.0, 5.0, 3.0], [0.0, 8.0, 7.0]]]  # in order: 0 1 9, 4 5 8, 3 6 7
    assert [order(after(None, target), index)[0, 0].item() for index in (1, 2, 3)] == [4.0, 6.0, 9.0]


def test_the_robust_mean_is_lower_by_its_radius():
    target = [[[9.0, 5.0, 0.0], [0.0, 5.0, 9.0]]]
    assert robust_mean(after(None, target), 4.0).tolist() == [[3.0, 3.0]]


def test_the_others_name_candidates_and_the_own_maximum_is_the_limit():
    # Member 0: candidates 0 and 2, of which it prefers 2 online; 8 there is below its own maximum, 50.
    # Member 1: candidates 1 and 2, of which it prefers 1; 50 is clipped to its own maximum, 9.
    online = [[[0.0, 9.0, 5.0], [9.0, 5.0, 0.0]]]
    target = [[[10.0, 50.0, 20.0], [9.0, 4.0, 8.0]]]
    assert candidates(after(online, target), 2).tolist() == [[8.0, 9.0]]
    assert candidates(after(online, target), 3).tolist() == [[4.0, 9.0]]


def test_smoothing_moves_weight_from_the_maximum_to_the_rest():
    target = [[[10.0, 50.0, 20.0]]]
    assert smoothed(after(None, target), 0.2)[0, 0].item() == pytest.approx(0.8 * 50 + 0.2 * 15)
    assert smoothed(after(None, [[[10.0]]]), 1.0).tolist() == [[10.0]]


class Options:
    """What the rules ask a config for."""

    split, subset_size, c, temperature = 2, 2, 1.0, 10.0
    alpha, scale, index, rho, candidates, smoothing = 0.2, 1.0, 2, 0.25, 2, 0.1


def bootstrap(rule, one, options=Options):
    drawn = None
    if rule.sample is not None:
        chance = torch.Generator().manual_seed(0)
        drawn = rule.sample(options, one.members, len(one.target), one.target.shape[1], chance)
    return rule.bootstrap(one, *rule.arguments(options, one, drawn))


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"robust-mean"}))  # which refuses atoms
def test_distributions_are_picked_as_values_are(name):
    """The mean of what a rule does to distributions is what it does to their means."""
    one = random_next(4, 3, seed=1)
    support = torch.tensor([-5.0, 0.5, 5.0], dtype=torch.float64)
    # Distributions on three atoms with the target's values as their means.
    high = (one.target - 0.5) / (support[2] - 0.5)
    low = (0.5 - one.target) / (0.5 - support[0])
    probabilities = torch.stack([low.clamp(min=0), torch.zeros_like(low), high.clamp(min=0)], -1)
    probabilities[..., 1] = 1 - probabilities.sum(-1)
    torch.testing.assert_close(probabilities @ support, one.target)
    mixed = bootstrap(RULES[name], one._replace(predictions=probabilities))
    assert mixed.shape == (4, 4, 3)
    torch.testing.assert_close(mixed.sum(-1), torch.ones(4, 4, dtype=torch.float64))
    torch.testing.assert_close(mixed @ support, bootstrap(RULES[name], one))


@pytest.mark.parametrize("name", sorted(RULES))
def test_quantiles_are_picked_as_values_are(name):
    """The mean of what a rule does to quantiles is what it does to their means; equal shapes stay equal."""
    one = random_next(4, 3, seed=1)
    offsets = torch.tensor([-2.0, 0.5, 1.5], dtype=torch.float64)  # their mean is 0
    quantiles = one.target.unsqueeze(-1) + offsets
    picked = bootstrap(RULES[name], one._replace(predictions=quantiles))
    torch.testing.assert_close(picked, bootstrap(RULES[name], one).unsqueeze(-1) + offsets)


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"cross"}))  # which draws for those who learn
def test_one_learner_gets_what_it_would_get_among_all(name):
    rule, one = RULES[name], random_next(4, 3, seed=2)
    together = bootstrap(rule, one)
    for k in range(4):
        online = one.online if rule.selects_together else one.online[:, k : k + 1]
        alone = bootstrap(rule, one._replace(online=online, members=torch.tensor([[k]])))
        assert torch.equal(alone, together[:, k : k + 1])
    # Each row may have a learner of its own.
    owners = torch.tensor([[2], [0], [3], [1]])
    online = one.online if rule.selects_together else one.online[torch.arange(4)[:, None], owners]
    own = bootstrap(rule, one._replace(online=online, members=owners))
    assert torch.equal(own, together.gather(1, owners))


class Adaptive(Options):
    split = "adaptive"


def without(one, action):
    """The same next observation in a world that lacks `action`."""
    online, target, predictions = (
        torch.cat([values[:, :, :action], values[:, :, action + 1 :]], 2)
        for values in (one.online, one.target, one.predictions)
    )
    return Next(online, target, predictions, one.members)


def with_decoy(one, action, value):
    """The same next observation, in which `action` is illegal and has this value for every member."""
    online, target, predictions = one.online.clone(), one.target.clone(), one.predictions.clone()
    for values in (online, target, predictions):
        values[:, :, action] = value
    legal = torch.ones(target[:, 0].shape, dtype=torch.bool)
    legal[:, action] = False
    return Next(online, target, predictions, one.members, legal)


@pytest.mark.parametrize("decoy", [1e9, -1e9])
@pytest.mark.parametrize("options", [Options, Adaptive])
@pytest.mark.parametrize("name", RULES)
def test_an_illegal_action_counts_for_nothing(name, options, decoy):
    """Whatever its value, every rule gives what it would give without the action."""
    rule, one = RULES[name], random_next(4, 5, seed=3, rows=50)
    for action in range(5):
        masked, lacking = with_decoy(one, action, decoy), without(one, action)
        torch.testing.assert_close(bootstrap(rule, masked, options), bootstrap(rule, lacking, options))
        if rule.backup_weight is not None:
            weights = [rule.backup_weight(options, each) for each in (masked, lacking)]
            torch.testing.assert_close(*weights)


@pytest.mark.parametrize("name", RULES)
def test_each_row_has_legal_actions_of_its_own(name):
    rule, one = RULES[name], random_next(4, 3, seed=4, rows=3)
    rows = [bootstrap(rule, with_decoy(one, action, 1e9), Adaptive) for action in range(3)]
    legal = ~torch.eye(3, dtype=torch.bool)
    online, target = (torch.where(legal[:, None], values, 1e9) for values in (one.online, one.target))
    mixed = bootstrap(rule, Next(online, target, target, one.members, legal), Adaptive)
    torch.testing.assert_close(mixed, torch.stack([rows[row][row] for row in range(3)]))


@pytest.mark.parametrize("name", RULES)
def test_a_mask_that_forbids_nothing_changes_nothing(name):
    rule, one = RULES[name], random_next(4, 3, seed=5)
    everything = one._replace(legal=torch.ones(4, 3, dtype=torch.bool))
    assert torch.equal(bootstrap(rule, everything), bootstrap(rule, one))
    torch.testing.assert_close(bootstrap(rule, everything, Adaptive), bootstrap(rule, one, Adaptive))


@pytest.mark.parametrize("name", RULES)
def test_where_an_episode_ended_without_legal_actions_values_are_finite(name):
    """They are multiplied by a discount of 0, and 0 · NaN is NaN."""
    ended = random_next(4, 3, seed=6)._replace(legal=torch.zeros(4, 3, dtype=torch.bool))
    assert bootstrap(RULES[name], ended, Adaptive).isfinite().all()


@settings(deadline=None)  # a busy machine must not fail a property
@given(st.integers(2, 6), st.integers(1, 5), SEEDS)
def test_ensemble_bootstrap_equals_the_slow_sum_over_the_others(n_members, n_actions, seed):
    one = random_next(n_members, n_actions, seed)
    values = ensemble_bootstrap(one)
    as_split = split(one, torch.tensor([1]))
    for row in range(4):
        for k in range(n_members):
            action = int(one.online[row, k].argmax())
            others = [one.target[row, j, action].item() for j in range(n_members) if j != k]
            slow = torch.tensor(sum(others) / len(others), dtype=torch.float64)
            torch.testing.assert_close(values[row, k], slow)
            torch.testing.assert_close(as_split[row, k], slow)


@settings(deadline=None)  # a busy machine must not fail a property
@given(SEEDS)
def test_two_members_are_double_q_learning_with_the_other_member(seed):
    one = random_next(2, 3, seed)
    other = double_q(one._replace(target=one.target.flip(1), predictions=one.target.flip(1)))
    torch.testing.assert_close(ensemble_bootstrap(one), other)
    assert torch.equal(cross(one, torch.tensor([[1, 0]])), other)


@settings(deadline=None)  # a busy machine must not fail a property
@given(st.integers(2, 5), SEEDS)
def test_the_pessimists_stand_in_their_order(n_members, seed):
    one = random_next(n_members, 4, seed)
    everybody = torch.arange(n_members)
    assert (clipped_double(one) <= double_q(one)).all()
    assert torch.equal(maxmin(one), subset_minimum(one, everybody))
    assert (maxmin(one) <= subset_minimum(one, everybody[:1])).all()
    assert (maxmin(one) <= mean_maximum(one)).all()
    assert (mean_maximum(one) <= q_learning(one).mean(1, keepdim=True) + 1e-12).all()


def test_what_is_drawn_is_never_oneself_and_never_twice():
    members, chance = torch.arange(5)[None], torch.Generator().manual_seed(0)
    others = sample_others(members, 2000, 5, chance)
    assert others.shape == (2000, 5)
    assert not (others == members).any()
    counts = torch.stack([(others[:, 0] == k).sum() for k in range(1, 5)])
    assert (abs(counts - 500) < 80).all()
    subset = sample_subset(3, 5, chance)
    assert len(set(subset.tolist())) == 3


class AdaEQLike:
    tolerance, ensemble_size = 0.4, 10


@pytest.mark.parametrize(
    ("size", "deviation", "expected"),
    [
        (7, 0.5, {8, 9, 10}),  # the error varies too much: more members
        (7, 0.3, {2, 3, 4, 5, 6}),
        (7, 0.4, {7}),
        (10, 9.0, {10}),  # not more than all
        (2, 0.0, {2}),  # not fewer than two
    ],
)
def test_adaeq_draws_a_larger_subset_above_the_tolerance_and_a_smaller_one_below(size, deviation, expected):
    generator = torch.Generator().manual_seed(0)
    assert {steered_size(AdaEQLike, size, deviation, generator) for _ in range(100)} == expected


def test_the_adaptive_order_has_an_index_for_each_row():
    # Five members. All agree on action 1: the median. Three of five agree: the second; of action 0 it is 3.
    agreed = [[0.0, 10], [1, 20], [2, 30], [3, 40], [4, 50]]
    two_differ = [[60.0, 10], [61, 20], [2, 90], [3, 91], [4, 92]]
    values = torch.tensor([agreed, two_differ])
    assert adaptive_order(Next(None, values, values, torch.arange(5)[None])).tolist() == [
        [30.0] * 5,
        [20.0] * 5,
    ]
