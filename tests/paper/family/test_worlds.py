import numpy as np
import pytest

from ebql.environments import meta_chain
from ebql.paper.family.worlds import ARM_STD, GAP, arms_world, graded_meta_chain


def test_the_graded_chain_keeps_what_risk_is_worth():
    plain, graded = meta_chain(), graded_meta_chain()
    for before, after in zip(plain.decisions, graded.decisions, strict=True):
        exact = graded.optimal_values(1.0)[after.state]
        assert exact[after.risky_action] == pytest.approx(before.mean)
        behind = graded.expected_rewards[after.state + 1, : graded.action_counts[after.state + 1]]
        np.testing.assert_allclose(behind, before.mean - GAP * (np.arange(len(behind)) > 0))


def test_all_arms_of_a_bandit_are_worth_nothing_and_spread():
    world = arms_world(5)
    behind = world.decisions[0].state + 1
    assert world.action_counts[behind] == 5
    np.testing.assert_array_equal(world.expected_rewards[behind, :5], 0)
    assert (world.reward_stds[behind, :5].max(-1) == ARM_STD).all()
