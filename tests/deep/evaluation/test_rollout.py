"""Episodes played without learning: which values act, what is recorded, and when an episode is cut."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ebql.deep.agent import DQN
from ebql.deep.agents import MaxminDQN
from ebql.deep.evaluation.rollout import play
from ebql.environments import make_lanes
from ebql.errors import RunError

play_on_mean = partial(play, pessimistic=False)


class Walk(gymnasium.Env):
    """Shows the time and the first draw of its seed; its reward is the time, and 100 for action 1.

    Ends at `length`: terminated, or truncated if `cut`. Without a length it never ends.
    """

    observation_space = Box(0, 1e6, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, length=None, cut=False):
        self.length, self.cut = length, cut

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.mark = 0, float(self.np_random.integers(1000))
        return self._observation(), {}

    def step(self, action):
        self.time += 1
        over = self.time == self.length
        reward = self.time + 100.0 * (action == 1)
        return self._observation(), reward, over and not self.cut, over and self.cut, {}

    def _observation(self):
        return np.array([self.time, self.mark], np.float32)


class Mixed(Walk):
    """An episode ends after 3 steps if its mark is even, and never if it is odd."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.length = None if self.mark % 2 else 3
        return observation, info


def disagreeing(observations):
    """Values (N, 2, 2): the mean prefers action 1, at 3, the minimum action 0, at 2."""
    return np.tile([[2.0, 0.0], [2.5, 6.0]], (len(observations), 1, 1))


def test_pessimists_play_on_the_minimum_and_expect_it():
    for pessimistic, reward, expected in ((False, 100.0, 3.0), (True, 0.0, 2.0)):
        (trace,) = play(disagreeing, make_lanes(lambda: Walk(3), 1), 1, seed=0, pessimistic=pessimistic)
        assert trace.rewards.tolist() == [reward + time for time in (1, 2, 3)]
        assert trace.values.tolist() == [expected] * 3
        assert trace.agreements.tolist() == [0.5] * 3


def test_evaluations_of_maxmin_expect_the_minimum(small):
    agent = MaxminDQN("CartPole-v1", ensemble_size=3, **small)
    seen, values_of = [], agent._values
    agent._values = lambda rows: seen.append(values_of(rows)) or seen[-1]
    (bias, lengths) = (found := agent.evaluate(1, seed=0)).bias, found.lengths
    said = np.concatenate([values.numpy() for values in seen])[: lengths[0]]  # (T, 3, 2)
    assert bias.value == pytest.approx(said.min(1).max(-1).mean())
    assert bias.value < said.mean(1).max(-1).mean() - 1e-3


def first_action(observations):
    """Values (N, 1, 2) by which action 0 is best; what it is said to be worth is the time."""
    time = observations[:, :1].astype(float)
    return np.stack([time, time - 1], -1)


def marks_seen(make, n_lanes, episodes, **settings):
    """Play, and return the traces and every observation that was acted on, a list for each lane."""
    seen = []

    def values(observations):
        seen.append(observations.copy())
        return first_action(observations)

    lanes = make_lanes(make, n_lanes)
    return play(values, lanes, episodes, seed=3, pessimistic=False, **settings), seen


def test_a_truncation_is_not_a_termination():
    (ended,) = play_on_mean(first_action, make_lanes(lambda: Walk(4)), 1, seed=0)
    (cut,) = play_on_mean(first_action, make_lanes(lambda: Walk(4, cut=True)), 1, seed=0)
    assert (ended.terminated, cut.terminated) == (True, False)
    assert ended.rewards.tolist() == cut.rewards.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("mode", [None, AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_after_a_reset_the_new_episode_is_acted_on(mode):
    """The value noted at each step is the time that was shown: 0, 1, 2, and 0 again."""
    make = [lambda: Walk(3)] * 2
    lanes = make_lanes(make[0], 2) if mode is None else make_lanes(SyncVectorEnv(make, autoreset_mode=mode))
    traces = play_on_mean(first_action, lanes, 6, seed=0)
    assert [trace.values.tolist() for trace in traces] == [[0, 1, 2]] * 6
    assert [trace.rewards.tolist() for trace in traces] == [[1, 2, 3]] * 6


def test_epsilon_is_the_probability_of_a_random_action():
    lanes = make_lanes(lambda: Walk(100), 5)

    def share_of_the_other(epsilon):
        traces = play_on_mean(first_action, lanes, 20, seed=1, epsilon=epsilon)
        return np.mean([trace.rewards > 100 for trace in traces])  # the time is at most 100

    assert share_of_the_other(0.0) == 0
    assert share_of_the_other(0.4) == pytest.approx(0.2, abs=0.04)
    assert share_of_the_other(1.0) == pytest.approx(0.5, abs=0.05)


def test_an_agent_evaluates_with_its_evaluation_epsilon_and_measures_bias_without(small):
    agent = DQN(lambda: Walk(50), **small, evaluation_epsilon=1.0)
    n_ones = (np.array(agent.evaluate(20, seed=0).returns) - 50 * 51 / 2) / 100
    assert n_ones.mean() == pytest.approx(25, abs=3)
    greedy = DQN(lambda: Walk(50), **small, evaluation_epsilon=0.0)
    assert greedy.evaluate(20, seed=0).bias == agent.measure_bias(episodes=20, seed=0)
    assert greedy.evaluate(20, seed=0).bias != agent.evaluate(20, seed=0).bias


def test_members_are_compared_with_their_mean():
    """The mean follows the last two of three members; with member 0 agrees nobody else."""
    members = np.array([[1.0, 0.0], [0.0, 4.0], [0.0, 5.0]])
    (trace,) = play_on_mean(
        lambda rows: np.tile(members, (len(rows), 1, 1)), make_lanes(lambda: Walk(2)), 1, seed=0
    )
    assert trace.agreements.tolist() == pytest.approx([2 / 3, 2 / 3])
    assert trace.values.tolist() == pytest.approx([3, 3])
    assert trace.spreads.tolist() == pytest.approx([np.std([0, 4, 5])] * 2)
    assert trace.rewards.tolist() == [101, 102]


def test_evaluations_at_different_steps_play_different_episodes(small):
    """The start of each episode is settled by its seed, so equal starts would mean equal seeds."""
    agent = DQN("CartPole-v1", **{**small, "learning_starts": 500})  # never updated: only the seeds differ
    agent.learn(50)
    first, again = agent.evaluate(5), agent.evaluate(5)
    agent.learn(50)
    assert first == again
    assert agent.evaluate(5).bias.value != first.bias.value


def test_episodes_that_never_end_are_cut():
    traces, _ = marks_seen(Walk, 2, 5, max_steps=7)
    assert [len(trace.rewards) for trace in traces] == [7] * 5
    assert [trace.rewards.tolist() for trace in traces] == [[1, 2, 3, 4, 5, 6, 7]] * 5
    assert not any(trace.terminated for trace in traces)


def test_after_all_lanes_were_cut_the_next_episodes_are_new_ones():
    def acted_on():
        _, seen = marks_seen(Walk, 2, 6, max_steps=7)
        return [rows for rows in seen if len(rows) == 2]  # single rows are states at a cut

    seen = acted_on()
    marks = {tuple(rows[:, 1].tolist()) for rows in seen}
    assert len(seen) == 3 * 7
    assert len(marks) == 3
    np.testing.assert_array_equal(seen, acted_on())


@pytest.mark.parametrize("mode", [None, AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_what_a_retired_lane_leaves_is_played_by_the_others(mode):
    make = [Mixed] * 4
    lanes = make_lanes(Mixed, 4) if mode is None else make_lanes(SyncVectorEnv(make, autoreset_mode=mode))
    traces = play_on_mean(first_action, lanes, 30, seed=0, max_steps=9)
    assert len(traces) == 30
    kinds = {(len(trace.rewards), trace.terminated) for trace in traces}
    assert kinds == {(3, True), (9, False)}
    for trace in traces:
        assert trace.values.tolist() == list(range(len(trace.rewards)))  # whole episodes, from their start


class Lengths(Walk):
    """Each environment's episodes have its own length; it counts its steps."""

    made = 0

    def __init__(self):
        super().__init__(3 + 5 * Lengths.made)
        Lengths.made, self.n_steps = Lengths.made + 1, 0

    def step(self, action):
        self.n_steps += 1
        return super().step(action)


def test_a_lane_that_has_played_its_share_is_not_stepped_any_more(monkeypatch):
    monkeypatch.setattr(Lengths, "made", 0)
    lanes = make_lanes(Lengths, 3)
    traces = play_on_mean(first_action, lanes, 6, seed=0)
    assert [len(trace.rewards) for trace in traces] == [3, 3, 8, 8, 13, 13]
    assert [environment.n_steps for environment in lanes._environments] == [6, 16, 26]


def test_a_lane_that_rests_plays_on_when_others_retire(monkeypatch):
    """Lane 0 has finished its share when lane 1 is cut, and plays the episode that lane 1 leaves."""

    class Endless(Lengths):
        def __init__(self):
            super().__init__()
            self.length = None if self.length == 8 else 3

    monkeypatch.setattr(Lengths, "made", 0)
    lanes = make_lanes(Endless, 2)
    traces = play_on_mean(first_action, lanes, 4, seed=0, max_steps=20)
    assert [(len(trace.rewards), trace.terminated) for trace in traces] == [(3, True)] * 3 + [(20, False)]
    assert all(trace.values.tolist() == list(range(len(trace.rewards))) for trace in traces)
    assert [environment.n_steps for environment in lanes._environments] == [9, 20]


def test_a_limit_that_no_episode_reaches_changes_nothing():
    lanes = make_lanes("CartPole-v1", 3)

    def values(observations):
        return np.stack([-observations[:, 2:3], observations[:, 2:3]], -1)

    free, limited = (play_on_mean(values, lanes, 8, seed=2, epsilon=0.3, max_steps=n) for n in (27_000, 501))
    assert max(len(trace.rewards) for trace in free) <= 500
    for one, other in zip(free, limited, strict=True):
        np.testing.assert_array_equal(one.rewards, other.rewards)
        np.testing.assert_array_equal(one.values, other.values)


def test_an_episode_that_ends_at_the_limit_is_not_cut():
    traces, seen = marks_seen(lambda: Walk(5), 2, 4, max_steps=5)
    assert [trace.terminated for trace in traces] == [True] * 4
    assert len(seen) == 10


def test_an_environment_without_an_end_can_be_evaluated(small, monkeypatch):
    monkeypatch.setattr("ebql.deep.evaluation.rollout.MAX_STEPS", 60)
    agent = DQN("CliffWalking-v1", **small, seed=0)
    assert set(agent.evaluate(12).lengths) <= set(range(1, 61))


def test_the_limit_is_ataris():
    assert play.__kwdefaults__["max_steps"] == 27_000


class Broken(Walk):
    """Can be reset `resets` times, and gives `reward`."""

    def __init__(self, resets, reward=1.0):
        super().__init__(3)
        self.resets, self.reward = resets, reward

    def reset(self, *, seed=None, options=None):
        self.resets -= 1
        if self.resets < 0:
            raise OSError("no more\nfuel")
        return super().reset(seed=seed)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward if self.time < 2 else self.reward, *rest


def test_a_reset_that_raises_is_told_in_one_line(small):
    agent = DQN(lambda: Broken(0), **small)
    with pytest.raises(RunError, match=r"^The environment raised OSError on reset: no more$"):
        agent.learn(20)
    with pytest.raises(RunError, match=r"^The environment raised OSError on reset: no more$"):
        agent.evaluate(1)


def test_a_later_reset_that_raises_is_told_with_its_step(small):
    with pytest.raises(RunError, match=r"raised OSError after step 2: no more$"):
        DQN(lambda: Broken(1), **small).learn(20)


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), -float("inf")])
def test_a_reward_that_is_not_finite_is_told_before_it_is_learnt_from(reward, small, tmp_path):
    told = rf"^The environment gave the reward {reward} after step 1: it must be finite\."
    with pytest.raises(RunError, match=told) as caught:
        DQN(lambda: Broken(99, reward), **small).learn(20, out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert "To continue from step 0: ebql resume" in str(caught.value)
    with pytest.raises(RunError, match=told.replace(" 1:", " 1 of an evaluation:")):
        DQN(lambda: Broken(99, reward), **small).evaluate(1)


class Blind(Walk):
    """Episodes of three steps; from its `sees`-th step on, over all of them, its mark is `wrong`."""

    def __init__(self, sees, wrong=float("nan")):
        super().__init__(3)
        self.sees, self.wrong = sees, wrong

    def step(self, action):
        self.sees -= 1
        return super().step(action)

    def _observation(self):
        mark = self.mark if self.sees > 0 else self.wrong
        return np.array([self.time, mark], np.float32)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_an_observation_that_is_not_finite_is_told_before_it_is_learnt_from(wrong, small, tmp_path):
    """The weights were fine: nothing speaks against the learning rate, and the last checkpoint is whole."""
    run = tmp_path / "run"
    told = rf"^The environment gave an observation with {wrong} after step 160: it must be finite\."
    agent = DQN(lambda: Blind(161, wrong), **small)
    with pytest.raises(RunError, match=told) as caught:
        agent.learn(300, out=run)
    assert "\n" not in str(caught.value)
    assert "rate" not in str(caught.value)
    assert "To continue from step 100: ebql resume" in str(caught.value)
    kept = DQN.load(run)
    assert (kept.steps, np.isfinite(kept.q_values(np.zeros(2))).all()) == (100, True)
    # To come back to step 100 takes one step, the first of the current episode.
    with pytest.raises(RunError, match=r"observation with .* after step 160: .*continue from step 100: "):
        DQN.resume(run, environment=lambda: Blind(62, wrong))
    assert DQN.load(run).steps == 100
    assert DQN.resume(run, environment=lambda: Walk(3)).steps == 300


@pytest.mark.parametrize("mode", [None, AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_lane_that_shows_what_is_not_finite_is_named(mode, small):
    makers = [lambda: Walk(3), lambda: Blind(8), lambda: Walk(3)]
    if mode is None:
        every = iter(makers)
        agent = DQN(lambda: next(every)(), **small, envs=3)
    else:
        agent = DQN(SyncVectorEnv(makers, autoreset_mode=mode), **small)
    told = r"^The environment in lane 1 \(of 0 to 2\) gave an observation with nan after step \d+: "
    with pytest.raises(RunError, match=told):
        agent.learn(60)


@pytest.mark.parametrize("mode", [None, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("last", [True, False])
def test_the_last_and_the_first_observation_of_an_episode_are_looked_at(mode, last, small):
    """Of the two that meet at an episode's end, only one is wrong."""

    class BlindOnce(Blind):
        def _observation(self):
            wrong = self.sees == 0 and (self.time == 3) == last
            return np.array([self.time, self.wrong if wrong else self.mark], np.float32)

    def make():
        return BlindOnce(3)

    environment = make if mode is None else SyncVectorEnv([make], autoreset_mode=mode)
    with pytest.raises(RunError, match=r"observation with nan after step 2: "):
        DQN(environment, **small).learn(20)


def test_an_evaluation_names_the_observation_too(small):
    with pytest.raises(RunError, match=r"^The environment gave an observation with nan on reset: "):
        DQN(lambda: Blind(0), **small).evaluate(1)
    told = r"^The environment gave an observation with nan after step 1 of an evaluation: "
    with pytest.raises(RunError, match=told):
        DQN(lambda: Blind(2), **small).evaluate(1)


def test_an_evaluation_does_not_begin_where_the_agent_has_learnt(small):
    begun = []

    class Noting(Walk):
        def reset(self, *, seed=None, options=None):
            begun.append(seed)
            return super().reset(seed=seed, options=options)

    agent = DQN(lambda: Noting(5), seed=7, **small).learn(60)
    learnt = begun.copy()
    begun.clear()
    for seed in (None, 7):
        agent.evaluate(12, seed=seed)
    assert len(learnt) >= 12
    assert len(begun) >= 24
    assert set(learnt).isdisjoint(begun)
