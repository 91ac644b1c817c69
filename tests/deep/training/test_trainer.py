"""What enters the replay, through real vector environments."""

import sys
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ebql.deep.agent import DQN, EBQL
from ebql.deep.agents import AveragedDQN
from ebql.deep.learner import Learner
from ebql.deep.training import trainer
from ebql.deep.training.trainer import crossings
from ebql.errors import RunError


class Counter(gymnasium.Env):
    """Shows the time, 0, 1, 2, …; ends after 4 steps by termination, or after 3 by truncation."""

    observation_space = Box(0, 100, (1,), np.float32)
    action_space = Discrete(2)
    fails_at: ClassVar[int | None] = None

    def __init__(self, truncate=False):
        self.truncate = truncate

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        if self.time == self.fails_at:
            raise RuntimeError("the wheels came off\nand more")
        observation = np.full(1, self.time, np.float32)
        stop, cut = self.time == 4, self.truncate and self.time == 3
        return observation, 10.0 * self.time, stop, cut, {}


def vector(truncate, mode):
    return SyncVectorEnv([lambda: Counter(truncate)] * 3, autoreset_mode=mode)


def rows_of(environment, small, steps=60, **options):
    agent = DQN(environment, **{**small, "discount": 0.5, **options})
    agent.learn(steps)
    replay = agent._training.replay
    columns = replay.state()
    return set(
        zip(
            columns["observations"][:, 0].tolist(),
            columns["rewards"].tolist(),
            columns["discounts"].tolist(),
            columns["next_observations"][:, 0].tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_termination_has_no_future_and_resets_are_no_transitions(mode, small):
    expected = {(0, 10, 0.5, 1), (1, 20, 0.5, 2), (2, 30, 0.5, 3), (3, 40, 0, 4)}
    assert rows_of(vector(False, mode), small) == expected
    assert rows_of(lambda: Counter(False), small) == expected


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_truncation_bootstraps_from_the_last_observation(mode, small):
    expected = {(0, 10, 0.5, 1), (1, 20, 0.5, 2), (2, 30, 0.5, 3)}
    assert rows_of(vector(True, mode), small) == expected
    assert rows_of(lambda: Counter(True), small) == expected


def test_n_step_rewards_stay_within_their_episode(small):
    rows = rows_of(vector(False, AutoresetMode.NEXT_STEP), small, n_step=2)
    assert rows == {(0, 20, 0.25, 2), (1, 35, 0.25, 3), (2, 50, 0, 4), (3, 40, 0, 4)}


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_n_step_rewards_end_at_a_truncation_and_bootstrap_from_it(mode, small):
    rows = rows_of(vector(True, mode), small, n_step=2)
    assert rows == {(0, 20, 0.25, 2), (1, 35, 0.25, 3), (2, 30, 0.5, 3)}


def test_rewards_are_clipped_for_learning_only(small):
    agent = DQN(lambda: Counter(False), **small, reward_clip=1.0).learn(60)
    assert set(agent._training.replay.state()["rewards"].tolist()) == {1.0}
    assert agent.evaluate(2).returns == (100.0, 100.0)


def test_reset_only_steps_do_not_count_as_agent_steps(small):
    agent = DQN(vector(False, AutoresetMode.NEXT_STEP), **small).learn(60)
    assert agent.steps == agent._training.replay.size == 60


def test_masks_have_the_asked_for_probability(small):
    agent = EBQL(
        lambda: Counter(False), **{**small, "learning_starts": 500}, data="masked", mask_probability=0.3
    ).learn(500)
    masks = agent._training.replay.state()["masks"]
    assert masks.shape == (500, 5)
    assert abs(masks.mean() - 0.3) < 0.04


def test_an_environment_that_raises_is_told_in_one_line(small, monkeypatch):
    monkeypatch.setattr(Counter, "fails_at", 2)
    with pytest.raises(RunError, match=r"raised RuntimeError after step 1: the wheels came off$"):
        DQN(lambda: Counter(False), **small).learn(60)


class Recorded(Counter):
    """A `Counter` that keeps every action taken."""

    taken: ClassVar[list[int]] = []

    def step(self, action):
        self.taken.append(int(action))
        return super().step(action)


@pytest.mark.parametrize(("epsilon", "least", "most"), [(1e-9, 0.0, 0.0), (0.4, 0.1, 0.3), (1.0, 0.4, 0.6)])
def test_training_explores_with_its_epsilon(epsilon, least, most, small, monkeypatch):
    """Without an update the greedy action of each state stays the same: the other one is exploration."""
    monkeypatch.setattr(Recorded, "taken", [])
    options = {**small, "learning_starts": 500, "epsilon_start": epsilon, "epsilon_end": epsilon}
    agent = DQN(lambda: Recorded(False), **options).learn(400)
    times = (np.arange(400) % 4).astype(np.float32)[:, None]
    greedy, _ = agent.predict(times, deterministic=True)
    assert least <= np.mean(np.array(Recorded.taken) != greedy) <= most


def test_nothing_is_learnt_before_learning_starts(small):
    agent = DQN(lambda: Counter(False), **{**small, "update_period": 1})
    observation = np.ones(1, np.float32)
    before = agent.q_values(observation)
    agent.learn(49)
    assert agent._learner.updates == 0
    np.testing.assert_array_equal(agent.q_values(observation), before)
    agent.learn(1)
    assert agent._learner.updates == 1
    assert not np.array_equal(agent.q_values(observation), before)


def test_blocks_of_updates_come_at_the_update_period(small):
    options = {**small, "learning_starts": 20, "update_period": 16, "updates_per_period": 8}
    agent = DQN(lambda: Counter(False), **options)
    observation, updates, values = np.ones(1, np.float32), [], []
    for _ in range(48):
        agent.learn(1)
        updates.append(agent._learner.updates)
        values.append(agent.q_values(observation))
    assert updates == [0] * 31 + [8] * 16 + [16]  # step 16 comes before learning starts
    for step in range(32, 47):  # the policy stands still between two blocks
        np.testing.assert_array_equal(values[step], values[31])
    assert not np.array_equal(values[47], values[31])


def test_several_lanes_take_as_many_blocks_as_periods_they_cross(small):
    options = {**small, "learning_starts": 6, "update_period": 2, "updates_per_period": 3, "envs": 6}
    agent = DQN(lambda: Counter(False), **options).learn(12)
    assert agent._learner.updates == 2 * 3 * 3


def test_several_lanes_move_polyak_averages_as_often_as_one(small, monkeypatch):
    times = []
    monkeypatch.setattr(Learner, "synchronise", lambda _, n: times.append(n))
    options = {**small, "target_period": 2, "target_rate": 0.01}
    DQN(lambda: Counter(False), **options).learn(12)
    assert times == [1] * 6
    DQN(lambda: Counter(False), **options, envs=6).learn(12)
    assert times[6:] == [3, 3]


def test_several_lanes_take_each_snapshot_once(small):
    options = {**small, "learning_starts": 12, "update_period": 6, "target_period": 2}
    agent = AveragedDQN(lambda: Counter(False), **options, snapshots=3, envs=6).learn(60)
    (values,) = agent._learner.target(torch.ones(1, 1)).tolist()  # (snapshots, A)
    assert len(set(map(tuple, values))) == 3


def test_the_last_loss_survives_a_restore(small):
    agent = DQN(lambda: Counter(False), **small).learn(60)
    other = DQN(lambda: Counter(False), **small).learn(1)
    assert agent._training.loss is not None
    assert other._training.loss is None
    other._training.restore(*agent._training.state())
    assert other._training.loss == agent._training.loss


def test_a_block_of_several_draws_a_batch_for_each_update(small, monkeypatch):
    options = {**small, "update_period": 10, "updates_per_period": 4, "learning_starts": 50}
    agent = DQN(lambda: Counter(False), **options).learn(49)
    drawn, sample = [], agent._training.sample

    def recorded():
        batch, rows = sample()
        drawn.append(rows.tolist())
        return batch, rows

    monkeypatch.setattr(agent._training, "sample", recorded)
    agent.learn(1)
    assert len(drawn) == len({tuple(rows) for rows in drawn}) == 4


def test_target_members_follow_at_the_target_period_only(small):
    agent = DQN(lambda: Counter(False), **{**small, "learning_starts": 10, "update_period": 1})

    def members(name):
        state = agent._learner.state()
        return np.concatenate([x.ravel() for key, x in state.items() if key.startswith(f"{name}.")])

    first = members("target").copy()
    agent.learn(39)
    np.testing.assert_array_equal(members("target"), first)
    assert not np.array_equal(members("online"), first)
    agent.learn(1)
    np.testing.assert_array_equal(members("target"), members("online"))
    agent.learn(1)
    assert not np.array_equal(members("target"), members("online"))


def test_with_priorities_every_members_own_rows_span_the_replay():
    options = {"data": "independent", "prioritized": True, "learning_starts": 200, "hidden": (8,)}
    agent = EBQL("CartPole-v1", preset="plain", batch_size=32, evaluation_period=0, **options).learn(300)
    blocks = agent._training.sample()[1].reshape(5, 32)
    assert (np.ptp(blocks, axis=1) > 150).all()


def test_crossings_count_multiples():
    assert [crossings(a, b, 4) for a, b in ((0, 3), (0, 4), (3, 4), (4, 5), (3, 13))] == [0, 1, 1, 0, 3]


def test_an_update_can_be_read_in_eight_files(monkeypatch):
    """From the training loop to the gradient; a ninth file would be one more to open."""
    agent = EBQL("CartPole-v1", preset="plain", learning_starts=50, evaluation_period=0).learn(100)
    files = {trainer.__file__}

    class ComputesGradientsError(Exception):
        pass

    def gradients(*_arguments, **_options):
        raise ComputesGradientsError

    def profile(frame, event, _argument):
        if event == "call" and "/ebql/" in frame.f_code.co_filename:
            files.add(frame.f_code.co_filename)

    monkeypatch.setattr(torch.autograd, "grad", gradients)
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with pytest.raises(ComputesGradientsError):
            agent._training._learn()
    finally:
        sys.setprofile(before)
    assert sum("/src/ebql/" in file for file in files) == 8, sorted(files)
