import numpy as np
import pytest

from ebql.environments import chain, mdp_from_gymnasium, meta_chain
from ebql.errors import UserError
from ebql.studies.tables.worlds import TableWorld, table_world
from ebql.tabular import EBQL, Group, Metric, QLearning, group_mean, learn, measure


def test_the_measures_agree_with_those_of_the_worlds_own_decisions():
    own = meta_chain()
    settings = {"episodes": 300, "seeds": 5, "record_every": 50, "epsilon": 0.3}
    world = TableWorld(own)
    found = world.measures(learn(world.followed, EBQL(3), **settings).decision_values, 1.0)
    expected = measure(learn(own, EBQL(3), **settings))
    for name, metric in (("correct", Metric.GREEDY_CORRECT), ("bias_optimal", Metric.BIAS_MAX)):
        np.testing.assert_allclose(found[name], group_mean(expected[metric], own, Group.ALL), atol=1e-12)


def test_a_greedy_policy_is_worth_what_the_exact_solution_says():
    world = table_world("FrozenLake-v1")
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(4, 3, len(world.states), 4)).round(1)  # rounded: some actions tie
    found = world.measures(tables, 0.95)
    mdp = mdp_from_gymnasium("FrozenLake-v1")
    for i, j in np.ndindex(4, 3):
        greedy = tables[i, j] == tables[i, j].max(-1, keepdims=True)
        policy = np.full((mdp.n_states, 4), 0.25)
        policy[world.states] = greedy / greedy.sum(-1, keepdims=True)
        values = (policy * mdp.policy_values(policy, 0.95)).sum(-1)
        assert found["value"][i, j] == pytest.approx(values[0], abs=1e-12)
        assert found["bias"][i, j] == pytest.approx(tables[i, j, 0].max() - values[0], abs=1e-12)


def test_a_masked_world_is_followed_in_every_state():
    taxi = mdp_from_gymnasium("Taxi-v4", action_masks=True)
    assert not taxi.exists[:, 0].all()  # no action is legal everywhere
    world = TableWorld(taxi)
    assert len(world.followed.decisions) == len(world.states)


def test_the_optimal_tables_are_right_and_without_bias():
    for name, discount in (("FrozenLake-v1", 0.99), ("CliffWalking-v1", 0.9), ("ebql/MetaChain-v0", 1.0)):
        world = table_world(name)
        width = int(world.mdp.action_counts[world.states].max())
        exact = world.mdp.optimal_values(discount)[world.states, :width]
        found = world.measures(np.nan_to_num(exact), discount)
        assert found["correct"] == 1
        assert found["bias"] == pytest.approx(0, abs=1e-9)
        assert found["bias_optimal"] == pytest.approx(0, abs=1e-12)
        assert found["value"] == pytest.approx(world.mdp.start @ _best(world.mdp, discount), abs=1e-9)


def _best(mdp, discount):
    return np.where(mdp.terminals, 0, np.nanmax(mdp.optimal_values(discount), axis=-1))


def test_measures_by_hand():
    # One chain with mean −0.2 behind two actions of B: safe (C) is worth 0, risky −0.2.
    world = TableWorld(chain(-0.2, actions=2))
    assert world.states.tolist() == [0, 1]
    tables = np.array([[[0.3, 0.1], [0.3, 99.0]], [[0.0, 0.0], [0.5, 0.1]], [[-1.0, 0.2], [0.0, 0.0]]])
    risky = world.mdp.decisions[0].risky_action
    tables = tables if risky == 0 else tables[:, :, ::-1]
    found = world.measures(tables, 1.0)
    np.testing.assert_allclose(found["value"], [-0.2, -0.1, 0.0])
    np.testing.assert_allclose(found["correct"], [0, 0.5, 1])
    np.testing.assert_allclose(found["bias"], [0.5, 0.1, 0.2])
    np.testing.assert_allclose(found["bias_optimal"], [0.3, 0.0, 0.2])


def test_undiscounted_values_need_worlds_whose_episodes_end():
    table_world("ebql/MetaChain-v0").check_discount(1)
    table_world("CliffWalking-v1").check_discount(0.999)
    with pytest.raises(UserError, match="never end an episode"):
        table_world("CliffWalking-v1").check_discount(1.0)
    for discount in (-0.1, 1.1, "0.9", True, float("nan")):
        with pytest.raises(UserError, match="must lie between 0 and 1"):
            table_world("CliffWalking-v1").check_discount(discount)


def test_following_every_state_does_not_change_what_is_learnt():
    world = table_world("FrozenLake-v1")
    settings = {"episodes": 50, "seeds": 3, "discount": 0.9}
    followed = learn(world.followed, QLearning(), **settings)
    plain = learn(world.mdp, QLearning(), **settings)
    assert followed.tables.tobytes() == plain.tables.tobytes()
    np.testing.assert_array_equal(
        followed.decision_values[:, -1], plain.q_values()[:, world.states], strict=True
    )
