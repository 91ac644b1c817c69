"""Stable-Baselines3's `VecEnv`s as lanes."""

import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecNormalize

from ebql import measure_bias
from ebql.neighbours.vec_env import VecEnvLanes

DISCOUNT, LIMIT = 0.9, 60


def limited(kind):
    return lambda: TimeLimit(kind(), LIMIT)


def measured(environment, value, episodes=200):
    return measure_bias(
        lambda x: np.zeros(len(x), int),
        environment,
        q_values=lambda x: np.full((len(x), 2), value),
        discount=DISCOUNT,
        episodes=episodes,
    )


def test_exact_values_have_no_bias_and_episodes_continue_past_the_limit(ending):
    environment = DummyVecEnv([limited(ending)] * 4)
    bias = measured(environment, ending().value(DISCOUNT))
    assert (bias.method, bias.limit) == ("continued", LIMIT + 44)
    assert abs(bias.mean) < 2.5 * bias.standard_error
    assert all(inner._max_episode_steps == LIMIT for inner in environment.envs)


def test_limits_are_reached_through_wrappers_of_the_vector(ending):
    environment = VecFrameStack(DummyVecEnv([limited(ending)]), 2)
    assert measured(environment, 1.0, episodes=2).method == "continued"


def test_rewards_are_those_of_the_vector_and_its_statistics_stay(ending):
    """The rewards that the agent learns from are those that VecNormalize gives: here a tenth."""
    environment = VecNormalize(DummyVecEnv([limited(ending)] * 4), norm_obs=False, gamma=DISCOUNT)
    environment.ret_rms.var = 100.0 - environment.epsilon
    bias = measured(environment, ending().value(DISCOUNT) / 10)
    assert abs(bias.mean) < 2.5 * bias.standard_error
    assert bias.discounted_return < 1
    assert environment.ret_rms.var == 100.0 - environment.epsilon
    assert environment.training


def test_the_limit_of_other_processes_is_read_from_their_specs(ending):
    environment = SubprocVecEnv([_cartpole], start_method="fork")
    try:
        lanes = VecEnvLanes(environment)
        assert (lanes.step_limit, lanes.extend_limit(5)) == (500, False)
    finally:
        environment.close()


def _cartpole():
    import gymnasium

    return gymnasium.make("CartPole-v1")


def test_the_end_of_an_episode_is_told_from_its_cut(ending):
    """Of the last observation, the first of the next episode, and whether learning may bootstrap."""

    class Counting(ending):
        def reset(self, *, seed=None, options=None):
            self.time = 0
            return super().reset(seed=seed)[0] * 0, {}

        def step(self, action):
            self.time += 1
            _, reward, _, _, info = super().step(action)
            return np.full(1, self.time / 9, np.float32), reward, self.time == 3, False, info

    lanes = VecEnvLanes(DummyVecEnv([Counting, lambda: TimeLimit(Counting(), 2)]))
    assert lanes.reset(seed=1).tolist() == [[0], [0]]
    lanes.step(np.zeros(2, int))
    second, third = lanes.step(np.zeros(2, int)), lanes.step(np.zeros(2, int))
    assert (second.terminated.tolist(), second.truncated.tolist()) == ([False, False], [False, True])
    assert second.next_observations[:, 0] == pytest.approx([2 / 9, 2 / 9])
    assert second.observations[:, 0] == pytest.approx([2 / 9, 0])
    assert (third.terminated.tolist(), third.truncated.tolist()) == ([True, False], [False, False])
    assert third.valid.all()


def test_equal_seeds_give_equal_episodes():
    lanes = VecEnvLanes(DummyVecEnv([_cartpole] * 2))
    first, again, other = (lanes.reset(seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.isclose(first, other).any()
    assert not np.isclose(first[0], first[1]).any()
