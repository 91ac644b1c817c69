from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.environments import Episode, Lanes, LaneStep, make_environment, make_lanes


class Corridor(gymnasium.Env[np.ndarray, np.int64]):
    """Counts its steps: action 1 terminates, the fourth step truncates; the reward is the step's number."""

    def __init__(self, start_of_actions: int = 0) -> None:
        self.observation_space = Box(-1, 10, (2,), np.float32)
        self.action_space = Discrete(2, start=start_of_actions)
        self._stop = 1 + start_of_actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._buffer = np.array([0, self.np_random.random()], np.float32)
        return self._buffer, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self._buffer[0] += 1  # in place: what it handed out before changes too
        steps = float(self._buffer[0])
        return self._buffer, steps, bool(action == self._stop), steps == 4, {}


def vector(make: Callable[[], gymnasium.Env[Any, Any]], n: int, mode: AutoresetMode) -> SyncVectorEnv:
    return SyncVectorEnv([make] * n, autoreset_mode=mode)


def take(lanes: Lanes, *actions: int) -> LaneStep:
    return lanes.step(np.array(actions))


def same_step() -> Lanes:
    return make_lanes(vector(Corridor, 2, AutoresetMode.SAME_STEP))


@pytest.mark.parametrize("make", [lambda: make_lanes(Corridor, 2), same_step], ids=["seeded", "same step"])
def test_an_episode_ends_with_its_own_last_observation_and_the_next_one_begins(make):
    lanes = make()
    lanes.reset(0)
    first = take(lanes, 0, 1)
    assert first.next_observations[:, 0].tolist() == [1, 1]
    assert first.observations[:, 0].tolist() == [1, 0]
    assert first.terminated.tolist() == [False, True]
    assert not first.truncated.any()
    assert first.rewards.tolist() == [1, 1]
    assert first.episodes == (Episode(lane=1, ret=1.0, length=1),)
    for _ in range(2):
        take(lanes, 0, 0)
    cut = take(lanes, 0, 0)
    assert cut.truncated.tolist() == [True, False]
    assert not cut.terminated.any()
    assert cut.next_observations[:, 0].tolist() == [4, 3]
    assert cut.observations[:, 0].tolist() == [0, 3]
    assert cut.episodes == (Episode(lane=0, ret=10.0, length=4),)
    assert cut.valid.all()
    assert first.next_observations[:, 0].tolist() == [1, 1], "an earlier step's arrays were written to"


def test_a_step_that_only_reset_a_lane_is_no_transition():
    lanes = make_lanes(vector(Corridor, 2, AutoresetMode.NEXT_STEP))
    lanes.reset(0)
    ended = take(lanes, 0, 1)
    assert ended.valid.all()
    assert ended.terminated.tolist() == [False, True]
    assert ended.next_observations[1, 0] == 1
    reset = take(lanes, 0, 1)
    assert reset.valid.tolist() == [True, False]
    assert not reset.terminated.any()
    assert reset.rewards.tolist() == [2, 0]
    assert reset.observations[:, 0].tolist() == [2, 0]
    assert not reset.episodes
    after = take(lanes, 0, 1)
    assert after.valid.all()
    assert after.episodes == (Episode(lane=1, ret=1.0, length=1),)
    cut = take(lanes, 0, 0)
    assert (cut.truncated.tolist(), cut.terminated.tolist()) == ([True, False], [False, False])
    assert cut.episodes == (Episode(lane=0, ret=10.0, length=4),)


def test_masked_steps_of_a_real_vector_env_are_those_without_a_move():
    lanes = make_lanes(gymnasium.make_vec("CartPole-v1", num_envs=3))
    before = lanes.reset(5)
    lengths, open_steps = 0, np.zeros(3, int)
    for t in range(200):
        step = lanes.step(np.full(3, t // 7 % 2))
        starts = np.abs(step.observations).max(1) < 0.05
        assert starts[~step.valid].all()
        # A cart moves by its velocity: a transition across a reset would jump.
        moved = before[:, 0] + 0.02 * before[:, 1]
        np.testing.assert_allclose(step.next_observations[step.valid, 0], moved[step.valid], atol=1e-6)
        open_steps += step.valid
        for episode in step.episodes:
            assert episode.length == open_steps[episode.lane]
            lengths += episode.length
            open_steps[episode.lane] = 0
        before = step.observations
    assert lengths > 300


def test_a_vector_env_that_reuses_its_buffer_cannot_rewrite_the_past():
    lanes = make_lanes(SyncVectorEnv([Corridor] * 2, copy=False))
    first = lanes.reset(0)
    take(lanes, 0, 0)
    assert first[:, 0].tolist() == [0, 0]


def test_episodes_and_lanes_have_seeds_of_their_own():
    lanes = make_lanes(Corridor, 2)
    starts = [*lanes.reset(3)[:, 1]]
    for _ in range(4):
        starts += [*take(lanes, 1, 1).observations[:, 1]]
    assert len(set(starts)) == len(starts)
    assert not set(starts) & set(make_lanes(Corridor, 2).reset(4)[:, 1])
    np.testing.assert_array_equal(make_lanes(Corridor, 2).reset(3)[:, 1], starts[:2])


@pytest.mark.parametrize("wrap", [lambda make: make, lambda make: SyncVectorEnv([make])])
def test_actions_count_from_zero_whatever_the_environment_calls_them(wrap):
    lanes = make_lanes(wrap(lambda: Corridor(start_of_actions=5)))
    lanes.reset(0)
    assert lanes.n_actions == 2
    assert not take(lanes, 0).terminated.any()
    assert take(lanes, 1).terminated.all()


MAKERS: dict[str, Callable[[], Lanes]] = {
    "CartPole, one lane": lambda: make_lanes("CartPole-v1"),
    "CartPole, three lanes": lambda: make_lanes("CartPole-v1", 3),
    "FrozenLake": lambda: make_lanes("FrozenLake-v1", 2),
    "Breakout": lambda: make_lanes("MinAtar/Breakout-v1", 2),
    "Seaquest, an object": lambda: make_lanes(make_environment("MinAtar/Seaquest-v1").env),
    "vector, next step": lambda: make_lanes(gymnasium.make_vec("FrozenLake-v1", num_envs=3)),
    "vector, same step": lambda: make_lanes(vector(Corridor, 3, AutoresetMode.SAME_STEP)),
}


def assert_equal_steps(ours: LaneStep, theirs: LaneStep) -> None:
    assert ours.episodes == theirs.episodes
    for mine, other in zip(ours[:-1], theirs[:-1], strict=True):
        np.testing.assert_array_equal(mine, other)
        assert np.asarray(mine).dtype == np.asarray(other).dtype


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**40), before=st.integers(0, 120), after=st.integers(1, 60), used=st.booleans())
def test_restored_lanes_go_on_as_if_never_interrupted(make, seed, before, after, used):
    whole, resumed = make(), make()
    rng = np.random.default_rng(seed)
    actions = rng.integers(whole.n_actions, size=(before + after, whole.n_lanes))
    observations = whole.reset(seed)
    for row in actions[:before]:
        observations = whole.step(row).observations
    if used:  # a lane with a past of its own comes back as well as a fresh one
        resumed.reset(seed + 1)
        resumed.step(actions[-1])
    state = {name: np.asarray(array) for name, array in whole.state().items()}
    np.testing.assert_array_equal(resumed.restore(state), observations)
    for row in actions[before:]:
        assert_equal_steps(resumed.step(row), whole.step(row))
    for name, array in whole.state().items():
        np.testing.assert_array_equal(resumed.state()[name], array)


class Forgetful(Corridor):
    """Ignores its seed."""

    def reset(self, **_):
        return super().reset()


@pytest.mark.parametrize("wrap", [lambda make: make, lambda make: SyncVectorEnv([make])])
def test_an_environment_that_cannot_be_brought_back_is_noticed(wrap):
    lanes = make_lanes(wrap(Forgetful))
    lanes.reset(0)
    take(lanes, 0)
    with pytest.raises(ValueError, match="did not come back as it was"):
        make_lanes(wrap(Forgetful)).restore(lanes.state())


def test_a_state_of_another_number_of_lanes_is_refused():
    two, three = make_lanes(Corridor, 2), make_lanes(Corridor, 3)
    two.reset(0)
    with pytest.raises(ValueError, match="holds 2 lanes; here are 3"):
        three.restore(two.state())


class Odd(Corridor):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Dict({"a": Discrete(2)})


@pytest.mark.parametrize(
    ("environment", "n_lanes", "error", "line"),
    [
        ("Pendulum-v1", 1, TypeError, "actions; this environment's are continuous"),
        (Odd, 1, TypeError, "Box or Discrete space, not Dict"),
        ("CartPol-v1", 1, ValueError, "Unknown environment 'CartPol-v1'. Did you mean 'CartPole-v1'"),
        ("breakout-v1", 1, ValueError, "Did you mean 'MinAtar/Breakout-v1'"),
        ("ALE/Pomg-v5", 1, ValueError, "Did you mean ALE/Pong-v5"),
        ("CartPole-v1", 0, ValueError, "at least 1, not 0"),
        ("CartPole-v1", 1.0, TypeError, "must be an integer, not 1.0"),
        (Corridor(), 2, ValueError, "One environment object is one lane"),
        (lambda: 3, 1, TypeError, "must return a gymnasium Env, not 3"),
        (3, 1, TypeError, "An environment is an id"),
        (vector(Corridor, 2, AutoresetMode.NEXT_STEP), 3, ValueError, "has 2 lanes, not 3"),
        (vector(Corridor, 2, AutoresetMode.DISABLED), 1, ValueError, "NEXT_STEP or SAME_STEP, not DISABLED"),
    ],
)
def test_what_cannot_be_learnt_on_is_one_clear_line(environment, n_lanes, error, line):
    with pytest.raises(error, match=line) as raised:
        make_lanes(environment, n_lanes)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "make", [lambda: make_lanes(Corridor), lambda: make_lanes(SyncVectorEnv([Corridor]))]
)
def test_bad_seeds_are_refused(make):
    with pytest.raises(ValueError, match="seed must lie between"):
        make().reset(-1)


def test_an_action_that_does_not_exist_never_reaches_a_vector_env():
    lanes = make_lanes(SyncVectorEnv([Corridor]))
    lanes.reset(0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        take(lanes, 2)


def test_a_long_vector_run_comes_back_beyond_the_first_block_of_its_log():
    lanes = make_lanes(SyncVectorEnv([Corridor] * 2))
    lanes.reset(0)
    for row in np.random.default_rng(0).integers(2, size=(2500, 2)):
        observations = lanes.step(row).observations
    np.testing.assert_array_equal(
        make_lanes(SyncVectorEnv([Corridor] * 2)).restore(lanes.state()), observations
    )
