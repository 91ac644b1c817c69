import numpy as np

from ebql.tabular.behaviours import Behaviour, greedy_action, upper_bounds

RNG = np.random.default_rng(0)
Q = np.array([[10.0, 50.0, 20.0], [99.0, 4.0, 98.0], [97.0, 6.0, 90.0]])


def test_thompson_acts_on_one_member_and_ucb_on_mean_and_spread():
    assert [greedy_action(Q, Behaviour.THOMPSON, 0.0, actor, RNG) for actor in range(3)] == [1, 0, 0]
    # Means 206/3, 20, 208/3: action 2 leads; the spread of action 0 is the larger one.
    assert greedy_action(Q, Behaviour.UCB, 0.0, 0, RNG) == 2
    assert greedy_action(Q, Behaviour.UCB, 1.0, 0, RNG) == 0
    np.testing.assert_allclose(upper_bounds(Q, 2.0), Q.mean(0) + 2 * Q.std(0))
