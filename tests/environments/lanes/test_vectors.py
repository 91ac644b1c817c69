import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.environments import Episode, make_lanes


def test_with_same_step_autoreset_an_episode_ends_with_its_own_last_observation(
    corridor, assert_episode_boundaries
):
    vector = SyncVectorEnv([corridor] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    assert_episode_boundaries(make_lanes(vector))


def test_a_step_that_only_reset_a_lane_is_no_transition(corridor):
    lanes = make_lanes(SyncVectorEnv([corridor] * 2, autoreset_mode=AutoresetMode.NEXT_STEP))
    lanes.reset(0)
    ended = lanes.step(np.array([0, 1]))
    assert ended.valid.all()
    assert ended.terminated.tolist() == [False, True]
    assert ended.next_observations[1, 0] == 1
    reset = lanes.step(np.array([0, 1]))
    assert reset.valid.tolist() == [True, False]
    assert not reset.terminated.any()
    assert reset.rewards.tolist() == [2, 0]
    assert reset.observations[:, 0].tolist() == [2, 0]
    assert not reset.episodes
    after = lanes.step(np.array([0, 1]))
    assert after.valid.all()
    assert after.episodes == (Episode(lane=1, ret=1.0, length=1),)
    cut = lanes.step(np.array([0, 0]))
    assert (cut.truncated.tolist(), cut.terminated.tolist()) == ([True, False], [False, False])
    assert cut.episodes == (Episode(lane=0, ret=10.0, length=4),)


def test_invalid_steps_of_a_real_vector_env_are_those_without_a_move():
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


def test_a_vector_env_that_reuses_its_buffer_cannot_change_earlier_observations(corridor):
    lanes = make_lanes(SyncVectorEnv([corridor] * 2, copy=False))
    first = lanes.reset(0)
    lanes.step(np.array([0, 0]))
    assert first[:, 0].tolist() == [0, 0]


MAKERS = {
    "next step": lambda _: gymnasium.make_vec("FrozenLake-v1", num_envs=3),
    "same step": lambda corridor: SyncVectorEnv([corridor] * 3, autoreset_mode=AutoresetMode.SAME_STEP),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**40), before=st.integers(0, 120), after=st.integers(1, 60), used=st.booleans())
def test_restored_lanes_continue_as_if_never_interrupted(
    assert_restores, corridor, make, seed, before, after, used
):
    assert_restores(lambda: make_lanes(make(corridor)), seed, before, after, used)


def test_a_long_run_is_restored_beyond_the_first_block_of_its_log(corridor):
    lanes = make_lanes(SyncVectorEnv([corridor] * 2))
    lanes.reset(0)
    for row in np.random.default_rng(0).integers(2, size=(2500, 2)):
        observations = lanes.step(row).observations
    np.testing.assert_array_equal(
        make_lanes(SyncVectorEnv([corridor] * 2)).restore(lanes.state()), observations
    )


def test_an_environment_that_cannot_be_restored_is_noticed(unseeded):
    lanes = make_lanes(SyncVectorEnv([unseeded]))
    lanes.reset(0)
    lanes.step(np.array([0]))
    with pytest.raises(ValueError, match="cannot be restored"):
        make_lanes(SyncVectorEnv([unseeded])).restore(lanes.state())


def test_a_state_with_another_number_of_lanes_is_refused(corridor):
    two, three = (make_lanes(SyncVectorEnv([corridor] * n)) for n in (2, 3))
    two.reset(0)
    with pytest.raises(ValueError, match="has 2 lanes, but there are 3 here"):
        three.restore(two.state())


def test_bad_seeds_are_refused(corridor):
    with pytest.raises(ValueError, match="seed must lie between"):
        make_lanes(SyncVectorEnv([corridor])).reset(-1)


def test_an_invalid_action_never_reaches_the_environment(corridor):
    lanes = make_lanes(SyncVectorEnv([corridor]))
    lanes.reset(0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        lanes.step(np.array([2]))


def test_other_kinds_of_autoreset_are_refused(corridor):
    vector = SyncVectorEnv([corridor] * 2, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(ValueError, match="NEXT_STEP or SAME_STEP, not DISABLED"):
        make_lanes(vector)


def test_same_step_autoreset_without_the_last_observation_is_refused(corridor):
    class Forgetful(gymnasium.vector.VectorWrapper):
        def step(self, actions):
            *results, info = self.env.step(actions)
            info.pop("final_obs", None)
            return *results, info

    lanes = make_lanes(Forgetful(SyncVectorEnv([corridor], autoreset_mode=AutoresetMode.SAME_STEP)))
    lanes.reset(0)
    lanes.step(np.array([0]))
    with pytest.raises(ValueError, match=r"no info\['final_obs'\].*use NEXT_STEP autoreset"):
        lanes.step(np.array([1]))


def test_the_time_limit_is_the_specs_and_cannot_be_extended(corridor):
    assert make_lanes(gymnasium.make_vec("CartPole-v1", num_envs=2)).step_limit == 500
    limited = make_lanes(gymnasium.make_vec("CartPole-v1", num_envs=2, max_episode_steps=30))
    assert limited.step_limit == 30
    assert not limited.extend_limit(100)
    assert make_lanes(SyncVectorEnv([corridor])).step_limit is None


def test_lanes_of_a_vector_environment_cannot_rest():
    lanes = make_lanes(SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2))
    lanes.reset(0)
    lanes.rest(np.array([True, False]))
    assert lanes.step(np.array([0, 0])).valid.all()
