"""What the tests of single and of vector lanes share."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from ebql.environments import Episode, LaneStep


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
        self._buffer[0] += 1  # in place: observations returned earlier change too
        steps = float(self._buffer[0])
        return self._buffer, steps, bool(action == self._stop), steps == 4, {}


class Unseeded(Corridor):
    """Ignores its seed."""

    def reset(self, **_):
        return super().reset()


@pytest.fixture(scope="session")
def corridor():
    return Corridor


@pytest.fixture(scope="session")
def unseeded():
    return Unseeded


@pytest.fixture(scope="session")
def assert_episode_boundaries():
    """Check two lanes of corridors that reset within the step that ends an episode."""

    def check(lanes):
        lanes.reset(0)
        first = lanes.step(np.array([0, 1]))
        assert first.next_observations[:, 0].tolist() == [1, 1]
        assert first.observations[:, 0].tolist() == [1, 0]
        assert first.terminated.tolist() == [False, True]
        assert not first.truncated.any()
        assert first.rewards.tolist() == [1, 1]
        assert first.episodes == (Episode(lane=1, ret=1.0, length=1),)
        for _ in range(2):
            lanes.step(np.array([0, 0]))
        cut = lanes.step(np.array([0, 0]))
        assert cut.truncated.tolist() == [True, False]
        assert not cut.terminated.any()
        assert cut.next_observations[:, 0].tolist() == [4, 3]
        assert cut.observations[:, 0].tolist() == [0, 3]
        assert cut.episodes == (Episode(lane=0, ret=10.0, length=4),)
        assert cut.valid.all()
        assert first.next_observations[:, 0].tolist() == [1, 1], "an earlier step's arrays were written to"

    return check


def assert_equal_steps(ours: LaneStep, theirs: LaneStep) -> None:
    assert ours.episodes == theirs.episodes
    for mine, other in zip(ours[:-1], theirs[:-1], strict=True):
        np.testing.assert_array_equal(mine, other)
        assert np.asarray(mine).dtype == np.asarray(other).dtype


@pytest.fixture(scope="session")
def assert_restores():
    """Check that restored lanes continue as if they had never been interrupted."""

    def check(make, seed, before, after, used):
        whole, resumed = make(), make()
        rng = np.random.default_rng(seed)
        actions = rng.integers(whole.n_actions, size=(before + after, whole.n_lanes))
        observations = whole.reset(seed)
        for row in actions[:before]:
            observations = whole.step(row).observations
        if used:  # lanes that have been stepped before are restored as well as new ones
            resumed.reset(seed + 1)
            resumed.step(actions[-1])
        state = {name: np.asarray(array) for name, array in whole.state().items()}
        np.testing.assert_array_equal(resumed.restore(state), observations)
        for row in actions[before:]:
            assert_equal_steps(resumed.step(row), whole.step(row))
        for name, array in whole.state().items():
            np.testing.assert_array_equal(resumed.state()[name], array)

    return check
