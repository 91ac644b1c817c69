"""Each rule against numbers worked out by hand, with decoys where a wrong role would look."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from ebql.deep.targets import RULES, double_q, ensemble_bootstrap, q_learning

REWARDS = torch.tensor([1.0, 10.0])
DISCOUNTS = torch.tensor([0.5, 0.0])  # the second transition ended its episode


def test_q_learning_takes_the_target_maximum_of_each_member():
    q_next_target = torch.tensor([[[2.0, 4.0], [8.0, 6.0]], [[99.0, 98.0], [97.0, 96.0]]])
    targets = q_learning(None, q_next_target, REWARDS, DISCOUNTS)
    assert targets.tolist() == [[1 + 0.5 * 4, 1 + 0.5 * 8], [10.0, 10.0]]


def test_double_q_selects_online_and_evaluates_with_the_target():
    # The online maximum is at action 0 for member 0 and 2 for member 1; 99 is what anybody else selects.
    q_next_online = torch.tensor([[[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]]])
    q_next_target = torch.tensor([[[4.0, 99.0, 98.0], [99.0, 98.0, 6.0]]])
    targets = double_q(q_next_online, q_next_target, REWARDS[:1], DISCOUNTS[:1])
    assert targets.tolist() == [[1 + 0.5 * 4, 1 + 0.5 * 6]]


def test_ensemble_bootstrap_leaves_the_selector_out_of_the_evaluation():
    # Members 0, 1, 2 select actions 0, 1, 2. Each member's own target value of its action is a decoy.
    q_next_online = torch.tensor([[[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]]])
    q_next_target = torch.tensor([[[99.0, 3.0, 5.0], [2.0, 98.0, 7.0], [4.0, 1.0, 97.0]]])
    targets = ensemble_bootstrap(q_next_online, q_next_target, REWARDS[:1], DISCOUNTS[:1])
    expected = [[1 + 0.5 * (2 + 4) / 2, 1 + 0.5 * (3 + 1) / 2, 1 + 0.5 * (5 + 7) / 2]]
    torch.testing.assert_close(targets, torch.tensor(expected))


def test_ensemble_bootstrap_selects_with_the_online_member_itself():
    # The target members all prefer action 1 (decoys); the online members prefer action 0.
    q_next_online = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    q_next_target = torch.tensor([[[3.0, 99.0], [5.0, 98.0]]])
    targets = ensemble_bootstrap(q_next_online, q_next_target, REWARDS[:1], DISCOUNTS[:1])
    assert targets.tolist() == [[1 + 0.5 * 5, 1 + 0.5 * 3]]


def test_no_rule_bootstraps_from_a_terminal_transition():
    values = torch.full((1, 3, 2), 1e6)
    for rule in RULES.values():
        targets = rule.targets(values, values, torch.tensor([7.0]), torch.tensor([0.0]))
        assert targets.tolist() == [[7.0, 7.0, 7.0]]


@given(st.integers(2, 6), st.integers(1, 5), st.integers(0, 2**31 - 1))
def test_ensemble_bootstrap_equals_the_slow_sum_over_the_others(n_members, n_actions, seed):
    generator = torch.Generator().manual_seed(seed)
    online, target = torch.randn(2, 4, n_members, n_actions, generator=generator, dtype=torch.float64)
    rewards, discounts = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    targets = ensemble_bootstrap(online, target, rewards, discounts)
    for row in range(4):
        for k in range(n_members):
            action = int(online[row, k].argmax())
            others = [target[row, j, action].item() for j in range(n_members) if j != k]
            slow = rewards[row] + discounts[row] * sum(others) / len(others)
            torch.testing.assert_close(targets[row, k], slow)


@given(st.integers(0, 2**31 - 1))
def test_two_members_are_double_q_learning_with_the_other_member(seed):
    generator = torch.Generator().manual_seed(seed)
    online, target = torch.randn(2, 4, 2, 3, generator=generator, dtype=torch.float64)
    rewards, discounts = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(
        ensemble_bootstrap(online, target, rewards, discounts),
        double_q(online, target.flip(1), rewards, discounts),
    )


@given(st.sampled_from(sorted(RULES)), st.integers(2, 5), st.integers(0, 2**31 - 1))
def test_a_members_target_reads_no_other_online_member(name, n_members, seed):
    generator = torch.Generator().manual_seed(seed)
    online, target = torch.randn(2, 4, n_members, 3, generator=generator)
    rewards, discounts = torch.randn(2, 4, generator=generator)
    targets = RULES[name].targets(online, target, rewards, discounts)
    for k in range(n_members):
        alone = online[:, k : k + 1].expand_as(target)
        assert torch.equal(RULES[name].targets(alone, target, rewards, discounts)[:, k], targets[:, k])
