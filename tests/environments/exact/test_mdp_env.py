from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from ebql.environments import MDP, MDPEnv, mdp_from_gymnasium, meta_chain
from ebql.tabular import EBQL, learn


def test_gymnasium_accepts_the_meta_chain():
    env = gymnasium.make("ebql/MetaChain-v0")
    check_env(env.unwrapped, skip_render_check=True)
    assert env.observation_space.n == 24
    assert env.action_space.n == 10


def test_each_action_leads_where_the_mdp_says():
    env = gymnasium.make("ebql/MetaChain-v0", means=(0.5,), std=0.0)
    for action, (state, ended) in {0: (1, False), 1: (2, True), 9: (2, True)}.items():
        _, info = env.reset(seed=0)
        assert info["action_mask"].tolist() == [True, True] + [False] * 8
        assert env.step(np.int64(action))[:4] == (state, 0.0, ended, False)
    env.reset(seed=0)
    env.step(0)
    assert env.step(7)[:4] == (3, 0.5, True, False)


def test_actions_that_a_mask_leaves_out_act_like_the_last_valid_one():
    world = MDP(
        transitions=np.array([[[0, 1], [1, 0], [0, 1]], [[0, 1]] * 3], float),
        reward_means=np.array([[1.0, 99.0, 3.0], [0.0, 0.0, 0.0]]),
        reward_stds=np.zeros(()),
        start=np.array([1.0, 0.0]),
        terminals=np.array([False, True]),
        action_masks=np.array([[True, False, True], [True, True, True]]),
    )
    env, rewards = MDPEnv(world), []
    for action in range(3):
        _, info = env.reset(seed=0)
        assert info["action_mask"].tolist() == [True, False, True]
        rewards.append(env.step(np.int64(action))[1])
    assert rewards == [1.0, 3.0, 3.0]


def test_rewards_and_starts_have_the_right_distribution():
    env = MDPEnv(meta_chain([-1.0, 2.0], std=0.5))
    rewards = {0: [], 4: []}
    env.reset(seed=1)
    for _ in range(2000):
        start, _ = env.reset()
        env.step(np.int64(0))
        rewards[int(start)].append(env.step(np.int64(3))[1])
    assert abs(len(rewards[0]) - 1000) < 5 * np.sqrt(500)
    for values, mean in zip(rewards.values(), (-1.0, 2.0), strict=True):
        assert np.mean(values) == pytest.approx(mean, abs=5 * 0.5 / np.sqrt(len(values)))
        assert np.std(values) == pytest.approx(0.5, rel=0.15)


def test_the_time_limit_truncates():
    env = MDPEnv(replace(mdp_from_gymnasium("CliffWalking-v1"), time_limit=5))
    for _ in range(2):
        env.reset(seed=0)
        ends = [env.step(np.int64(0))[2:4] for _ in range(5)]
        assert ends == [(False, False)] * 4 + [(False, True)]


def test_tables_learn_in_it_as_in_any_environment():
    history = learn("ebql/MetaChain-v0", EBQL(2), episodes=50, seeds=1)
    assert history.tables.shape == (1, 2, 24, 10)
