import numpy as np
import pytest

from ebql.deep.agent import DQN
from ebql.deep.bias import discounted_returns, measured_bias
from ebql.deep.playing import Trace, play
from ebql.environments import make_lanes


def trace(rewards, values, *, terminated=True):
    n = len(rewards)
    return Trace(np.array(rewards, float), np.array(values, float), np.ones(n), np.full(n, 0.5), terminated)


def test_returns_are_discounted_to_the_end():
    assert discounted_returns(np.array([8.0, 4.0, 2.0]), 0.5).tolist() == [10.5, 5.0, 2.0]


def test_a_worked_example():
    episodes = [trace([8, 4, 2], [11.5, 4, 2]), trace([0], [3])]
    bias = measured_bias(episodes, discount=0.5)
    assert bias.mean == pytest.approx((1 - 1 + 0 + 3) / 4)
    assert bias.absolute == pytest.approx(5 / 4)
    assert bias.value == pytest.approx(20.5 / 4)
    assert bias.discounted_return == pytest.approx(17.5 / 4)
    assert bias.normalised == pytest.approx(3 / 17.5)
    assert (bias.spread, bias.agreement, bias.states, bias.dropped) == (1, 0.5, 4, 0)
    # Episodes are the samples: residual sums are 0 − 3·0.75 and 3 − 0.75.
    assert bias.standard_error == pytest.approx(np.sqrt(2 * 2 * 2.25**2) / 4)


def test_the_training_reward_is_the_reference():
    assert measured_bias([trace([50], [1])], 0.9, reward_clip=1.0).mean == 0


def test_states_that_a_time_limit_cuts_short_are_dropped():
    cut = trace([1] * 5, [0] * 5, terminated=False)
    bias = measured_bias([cut], discount=0.5, tolerance=0.1)
    assert (bias.states, bias.dropped) == (2, 3)  # 0.5⁴ ≤ 0.1 < 0.5³
    assert bias.standard_error is None
    nothing = measured_bias([cut], discount=0.5, tolerance=1e-6)
    assert (nothing.mean, nothing.states, nothing.dropped) == (None, 0, 5)


def test_exact_values_have_no_bias():
    """On CartPole with a constant action, the return from each state is known once it is played."""
    lanes = make_lanes("CartPole-v1", 3)

    def values(observations):
        return np.tile(np.array([1.0, 0.0]), (len(observations), 4, 1))

    episodes = play(values, lanes, episodes=7, seed=0)
    assert len(episodes) == 7
    exact = [
        Trace(t.rewards, discounted_returns(t.rewards, 0.9), t.spreads, t.agreements, True) for t in episodes
    ]
    bias = measured_bias(exact, 0.9)
    assert bias.mean == bias.absolute == bias.standard_error == 0
    assert measured_bias(episodes, 0.9).agreement == 1


def test_an_agent_measures_its_own_bias(small):
    agent = DQN("CartPole-v1", **small).learn(100)
    bias = agent.measure_bias(episodes=4, seed=1)
    assert bias == agent.evaluate(4, seed=1).bias
    assert bias.mean == pytest.approx(bias.value - bias.discounted_return)
    assert agent.measure_bias("CartPole-v1", episodes=4, seed=1) == bias
