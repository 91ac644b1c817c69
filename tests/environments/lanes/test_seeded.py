from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.environments import Lanes, make_environment, make_lanes
from ebql.environments.lanes.seeded import SeededLanes, checked_seed, episode_seed, require_same


def test_an_episode_ends_with_its_own_last_observation_and_the_next_one_begins(
    corridor, assert_episode_boundaries
):
    assert_episode_boundaries(make_lanes(corridor, 2))


def test_episodes_and_lanes_have_their_own_seeds(corridor):
    lanes = make_lanes(corridor, 2)
    starts = [*lanes.reset(3)[:, 1]]
    for _ in range(4):
        starts += [*lanes.step(np.array([1, 1])).observations[:, 1]]
    assert len(set(starts)) == len(starts)
    assert not set(starts) & set(make_lanes(corridor, 2).reset(4)[:, 1])
    np.testing.assert_array_equal(make_lanes(corridor, 2).reset(3)[:, 1], starts[:2])


def test_episode_seeds_fit_every_emulator_and_never_change():
    seeds = [episode_seed(7, lane, episode) for lane in range(3) for episode in range(50)]
    assert len(set(seeds)) == len(seeds)
    assert max(seeds) < 2**30
    # Checkpoints rely on these numbers.
    assert [episode_seed(0, 0, 0), episode_seed(2**63 - 1, 1, 2)] == [1022133121, 119808834]


MAKERS: dict[str, Callable[[], Lanes]] = {
    "CartPole, one lane": lambda: make_lanes("CartPole-v1"),
    "CartPole, three lanes": lambda: make_lanes("CartPole-v1", 3),
    "FrozenLake": lambda: make_lanes("FrozenLake-v1", 2),
    "Breakout": lambda: make_lanes("MinAtar/Breakout-v1", 2),
    "Seaquest, an instance": lambda: make_lanes(make_environment("MinAtar/Seaquest-v1").env),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**40), before=st.integers(0, 120), after=st.integers(1, 60), used=st.booleans())
def test_restored_lanes_continue_as_if_never_interrupted(assert_restores, make, seed, before, after, used):
    assert_restores(make, seed, before, after, used)


@pytest.mark.parametrize("environment", ["CartPole-v1", "Taxi-v4"])  # without and with action masks
def test_a_lane_that_rests_is_left_as_it_is(environment):
    lanes, alone = make_lanes(environment, 2), make_lanes(environment, 2)
    lanes.reset(0)
    alone.reset(0)
    before = lanes.step(np.array([0, 1]))
    alone.step(np.array([0, 1]))
    masks = None if lanes.masks is None else lanes.masks[1].tolist()
    lanes.rest(np.array([False, True]))
    for action in (0, 1, 1):
        taken, wanted = lanes.step(np.array([action, 0])), alone.step(np.array([action, 1]))
        assert taken.valid.tolist() == [True, False]
        assert taken.rewards.tolist() == [wanted.rewards[0], 0.0]
        np.testing.assert_array_equal(taken.observations[0], wanted.observations[0])
        np.testing.assert_array_equal(taken.observations[1], before.observations[1])
        assert masks is None or lanes.masks[1].tolist() == masks
    lanes.reset(0)
    assert lanes.step(np.array([0, 1])).valid.all()


def test_an_environment_that_cannot_be_restored_is_noticed(unseeded):
    lanes = make_lanes(unseeded)
    lanes.reset(0)
    lanes.step(np.array([0]))
    with pytest.raises(ValueError, match="cannot be restored"):
        make_lanes(unseeded).restore(lanes.state())


def test_observations_are_compared_bit_for_bit():
    require_same(np.array([np.nan]), np.array([np.nan]))
    for saved in (np.array([-0.0]), np.array([0], np.float32)):
        with pytest.raises(ValueError, match="cannot be restored"):
            require_same(np.array([0.0]), saved)


def test_a_state_with_another_number_of_lanes_is_refused(corridor):
    two, three = make_lanes(corridor, 2), make_lanes(corridor, 3)
    two.reset(0)
    with pytest.raises(ValueError, match="has 2 lanes, but there are 3 here"):
        three.restore(two.state())


def test_bad_seeds_are_refused(corridor):
    for seed in (-1, 2**63):
        with pytest.raises(ValueError, match="seed must lie between"):
            make_lanes(corridor).reset(seed)
    assert checked_seed(2**63 - 1) == 2**63 - 1


def test_the_time_limit_is_reported_and_can_be_extended(corridor):
    lanes = make_lanes("CartPole-v1", 2)
    assert lanes.step_limit == 500
    assert lanes.extend_limit(100)
    assert make_lanes(corridor).step_limit is None
    assert not make_lanes(corridor).extend_limit(100)


class MaskedOnce(gymnasium.Env):
    """Two steps an episode, cut by a limit; only the first reset gives a mask, as every step does."""

    observation_space, action_space = gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(3)

    def __init__(self):
        self.resets = self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets, self.steps = self.resets + 1, 0
        return 0, {"action_mask": [1, 0, 0]} if self.resets == 1 else {}

    def step(self, action):
        self.steps += 1
        return self.steps, 0.0, False, self.steps == 2, {"action_mask": [0, 1, 0]}


def test_after_a_cut_episode_a_reset_without_a_mask_leaves_every_action_legal():
    lanes = SeededLanes([MaskedOnce()])
    lanes.reset(0)
    masks = [lanes.masks[0].tolist()]
    for action in (0, 1):
        lanes.step(np.array([action]))
        masks.append(lanes.masks[0].tolist())
    assert masks == [[True, False, False], [False, True, False], [True, True, True]]
