import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.environments import MDP, Decision


def two_step(**changes):
    """State 0 leads to 1 or back to itself; 1 leads to the terminal state 2."""
    parts = {
        "transitions": np.array([[[0.5, 0.5, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 0]], np.zeros((2, 3))]),
        "reward_means": np.array([[1.0, 0.0], [4.0, 99.0], [0.0, 0.0]]),
        "reward_stds": np.zeros(()),
        "start": np.array([1.0, 0, 0]),
        "terminals": np.array([False, False, True]),
        "action_counts": np.array([2, 1, 2]),
    }
    return MDP(**{**parts, **changes})


def test_optimal_values_by_hand():
    # v(1) = 4. Staying: q = 1 + 0.9 (0.5 v0 + 0.5 * 4), leaving: q = 0.9 * 4; staying wins: v0 = 2.8 / 0.55.
    q = two_step().optimal_values(0.9)
    np.testing.assert_allclose(q[0], [2.8 / 0.55, 3.6])
    np.testing.assert_allclose(q[1], [4.0, np.nan])
    np.testing.assert_array_equal(q[2], [0, 0])


def test_a_masked_action_has_no_value():
    # The same world without its best action, which is the first one of state 0.
    masks = np.array([[False, True], [True, False], [True, True]])
    world = two_step(action_counts=None, action_masks=masks)
    np.testing.assert_allclose(world.optimal_values(0.9)[:2], [[np.nan, 3.6], [4.0, np.nan]])
    assert world.action_counts.tolist() == [1, 1, 2]
    assert world.legal_actions.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert two_step().legal_actions is None


def test_policy_values_by_hand():
    q = two_step().policy_values([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], 0.9)
    np.testing.assert_allclose(q[0], [1 + 0.9 * 0.5 * 3.6 + 0.9 * 0.5 * 4, 3.6])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 0.95))
def test_the_greedy_policy_of_optimal_values_has_these_values(seed, discount):
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.ones(5), size=(5, 3))
    terminals = np.array([False] * 4 + [True])
    counts = rng.integers(1, 4, size=5)
    world = MDP(transitions, rng.normal(size=(5, 3, 5)), np.ones(()), [1, 0, 0, 0, 0], terminals, counts)
    optimal = world.optimal_values(discount)
    greedy = np.eye(3)[np.nan_to_num(optimal, nan=-np.inf).argmax(-1)]
    np.testing.assert_allclose(world.policy_values(greedy, discount), optimal, atol=1e-9)


def test_the_model_keeps_only_possible_successors():
    model = two_step().model
    assert model.successors.shape == (3, 2, 2)
    assert model.successors[0, 0].tolist() == [0, 1]
    assert model.cumulative[0, 0].tolist() == [0.5, 1.0]
    assert model.successors[0, 1, 0] == 1
    assert model.cumulative[0, 1, 0] == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transitions": np.full((3, 2, 3), 0.5)}, "row of state 0, action 0 .* sums to 1.5"),
        ({"transitions": np.zeros((3, 2, 2))}, "shape"),
        ({"transitions": np.full((3, 2, 3), np.nan)}, "finite"),
        ({"reward_means": np.zeros((3, 3))}, "reward_means must have shape"),
        ({"reward_stds": np.float64(-1)}, "negative"),
        ({"start": [0.5, 0.2, 0]}, "sums to 0.7"),
        ({"start": [0, 0, 1]}, "terminal"),
        ({"action_counts": [0, 1, 1]}, "action_counts"),
        ({"action_masks": [[True, False], [True, False], [True, True]]}, "disagree"),
        ({"action_masks": np.eye(3, 2) > 0, "action_counts": None}, "mask of state 2 leaves no action"),
        ({"action_masks": [True, True], "action_counts": None}, "action_masks must have shape"),
        ({"terminals": [True]}, "terminals must have shape"),
        ({"time_limit": 0}, "time_limit"),
        ({"reward_means": np.zeros(3)}, "reward_means must have shape"),
        ({"start": [1 - 1e-5, 0, 0]}, "sums to"),
        ({"decisions": (Decision("d", 1, 1, 0.0),)}, "action that does not exist"),
        ({"decisions": (Decision("d", 9, 0, 0.0),)}, "action that does not exist"),
    ],
)
def test_bad_worlds_are_one_clear_line(changes, message):
    with pytest.raises(ValueError, match=message):
        two_step(**changes)


def test_undiscounted_values_that_do_not_exist_are_refused():
    closed = np.zeros((3, 2, 3))
    closed[:, :, :2] = np.random.default_rng(0).dirichlet([1, 1], size=(3, 2))
    endless = two_step(transitions=closed)
    with pytest.raises(ValueError, match="never end"):
        endless.policy_values(np.full((3, 2), [1.0, 0.0]), 1.0)
    with pytest.raises(ValueError, match="did not converge"):
        endless.optimal_values(1.0, max_sweeps=50)
    with pytest.raises(ValueError, match="distribution over actions"):
        endless.policy_values(np.zeros((3, 2)), 1.0)
    for discount in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="discount must lie between 0 and 1"):
            endless.optimal_values(discount)
        with pytest.raises(ValueError, match="discount must lie between 0 and 1"):
            endless.policy_values(np.zeros((3, 2)), discount)
    with pytest.raises(ValueError, match="policy must have shape"):
        endless.policy_values(np.zeros((3, 1)), 1.0)
