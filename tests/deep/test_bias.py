import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from ebql.deep.agent import DQN
from ebql.deep.bias import discounted_returns, measured_bias
from ebql.deep.playing import Trace, play
from ebql.environments import PAPER_MEANS, make_lanes


def trace(rewards, values, *, terminated=True, lost_lives=()):
    n = len(rewards)
    columns = (np.array(rewards, float), np.array(values, float), np.ones(n), np.full(n, 0.5))
    return Trace(*columns, terminated, lost_lives)


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


def test_a_lost_life_ends_the_return_but_not_the_game():
    game = trace([8, 4, 1000, 2], [10, 4, 1001, 2], lost_lives=(1,))
    assert discounted_returns(game.rewards, 0.5, {1}).tolist() == [10, 4, 1001, 2]
    assert measured_bias([game], discount=0.5).absolute == 0
    assert game.score == 1014


def test_what_a_time_limit_cuts_is_not_missed_before_the_last_lost_life():
    cut = trace([1] * 6, [0] * 6, terminated=False, lost_lives=(0, 2))
    bias = measured_bias([cut], discount=0.5, tolerance=0.1)
    assert (bias.states, bias.dropped) == (3, 3)
    assert bias.discounted_return == pytest.approx((1 + 1.5 + 1) / 3)


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

    episodes = play(values, lanes, episodes=7, seed=0, pessimistic=False)
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


class Ladder(gymnasium.Env):
    """Shows the time; pays 4, then 0.5, then −3 and so on, and ends after 3 steps: terminated, or cut."""

    observation_space = Box(0, 100, (1,), np.float32)
    action_space = Discrete(2)
    pay = (4.0, 0.5, -3.0)

    def __init__(self, cut=False):
        self.cut = cut

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        over = self.time == 3
        observation = np.full(1, self.time, np.float32)
        return observation, self.pay[self.time - 1], over and not self.cut, over and self.cut, {}


# By hand with γ = 0.5: −3, 0.5 − 1.5, 4 − 0.5; clipped to ±1: −1, 0.5 − 0.5, 1 + 0.
@pytest.mark.parametrize(
    ("clip", "mean"), [(None, (-3 - 1 + 3.5) / 3), (1.0, (-1 + 0 + 1) / 3), (2.0, (-2 - 0.5 + 1.75) / 3)]
)
def test_bias_is_measured_with_the_agents_discount_and_clip(clip, mean, small):
    agent = DQN(Ladder, **small, discount=0.5, reward_clip=clip)
    bias = agent.measure_bias(episodes=3)
    assert bias.discounted_return == pytest.approx(mean)
    assert (bias.states, bias.dropped) == (9, 0)
    assert agent.evaluate(3).bias.discounted_return == pytest.approx(mean)
    assert agent.evaluate(3).returns == (1.5, 1.5, 1.5)
    recorded = agent.evaluate(3).to_json()
    assert recorded["bias/discounted_return"] == pytest.approx(mean)


def test_the_values_compared_are_those_of_the_states_on_the_way(small):
    agent = DQN(Ladder, **small, discount=0.5)
    expected = agent.q_values(np.arange(3, dtype=np.float32)[:, None]).max(-1).mean()
    assert agent.measure_bias(episodes=2).value == pytest.approx(float(expected), rel=1e-5)


def test_an_agent_drops_the_states_whose_return_was_cut(small):
    agent = DQN(lambda: Ladder(cut=True), **small, discount=0.5)
    bias = agent.measure_bias(episodes=4, tolerance=0.25)  # 0.5³ and 0.5² are small enough, 0.5 isn't
    assert (bias.states, bias.dropped) == (8, 4)
    assert bias.discounted_return == pytest.approx((3.5 - 1) / 2)
    everything = agent.evaluate(4).bias  # the tolerance is a hundredth
    assert (everything.mean, everything.states, everything.dropped) == (None, 0, 12)


def test_dqn_overestimates_on_the_meta_chain_as_a_table_does():
    """The sign of the measured bias is that of Q̂ − Q* in the states where episodes begin."""
    agent = DQN(
        "ebql/MetaChain-v0",
        hidden=(),
        discount=1.0,
        loss="mse",
        learning_rate=0.01,
        epsilon_end=1.0,
        update_period=2,
        target_period=50,
        replay_size=20_000,
        learning_starts=200,
        evaluation_period=0,
    ).learn(2500)
    bias = agent.measure_bias(episodes=400, seed=1)
    of_table = agent.q_values(np.arange(0, 4 * len(PAPER_MEANS), 4)).mean(1)[:, 0] - PAPER_MEANS
    assert of_table.mean() > 0.3
    assert bias.mean > 0.3
    assert bias.mean > 4 * bias.standard_error
