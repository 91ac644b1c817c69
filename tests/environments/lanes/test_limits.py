import gymnasium
import pytest
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from ebql.environments.lanes.limits import LimitExtension, step_limit


@pytest.fixture
def endless():
    """A function that makes an environment with the given time limits, which alone end an episode."""

    class Endless(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(1)
        action_space = gymnasium.spaces.Discrete(1)

        def reset(self, *, seed=None, options=None):
            return 0, {}

        def step(self, action):
            return 0, 0.0, False, False, {}

    def make(*limits):
        environment = Endless()
        for limit in limits:
            environment = OrderEnforcing(TimeLimit(environment, limit))
        return environment

    return make


def length(environment, most=50):
    """Return the steps until an episode is truncated."""
    environment.reset()
    return next(t for t in range(1, most) if environment.step(0)[3])


def test_the_limit_is_found_below_other_wrappers(endless):
    assert step_limit([endless(7)]) == 7
    assert step_limit([endless(7), endless(7)]) == 7
    assert step_limit([gymnasium.make("CartPole-v1")]) == 500


def test_the_shortest_of_several_limits_counts(endless):
    for limits in ((5, 9), (9, 5)):
        assert step_limit([endless(*limits)]) == length(endless(*limits)) == 5


def test_no_limit_or_different_limits_are_none(endless):
    assert step_limit([endless()]) is None
    assert step_limit([endless(7), endless()]) is None
    assert step_limit([endless(7), endless(8)]) is None


def test_the_limit_is_extended_and_restored(endless):
    environments = [endless(3), endless(3)]
    extension = LimitExtension(environments)
    for extra_steps in (0, 4, 2, 0):
        extension.set(extra_steps)
        assert [length(environment) for environment in environments] == [3 + extra_steps] * 2


def test_an_episode_that_is_running_is_extended_too(endless):
    environment = endless(3)
    extension = LimitExtension([environment])
    environment.reset()
    assert not environment.step(0)[3]
    extension.set(2)
    assert [environment.step(0)[3] for _ in range(4)] == [False, False, False, True]


def test_every_limit_is_extended_by_as_much(endless):
    environment = endless(5, 9)
    extension = LimitExtension([environment])
    extension.set(2)
    assert length(environment) == 7
    extension.set(0)
    assert length(environment) == 5


def test_environments_without_a_limit_are_left_alone(endless):
    environment = endless()
    LimitExtension([environment]).set(5)
    environment.reset()
    assert not any(environment.step(0)[3] for _ in range(20))
