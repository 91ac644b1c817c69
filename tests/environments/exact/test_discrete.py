import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ebql.environments import DiscreteEnv, make_discrete, mdp_from_gymnasium
from ebql.errors import InputTypeError


def test_known_values_of_toy_text():
    assert mdp_from_gymnasium("CliffWalking-v1").optimal_values(1.0)[36].max() == pytest.approx(-13)
    lake = mdp_from_gymnasium("FrozenLake-v1")
    assert lake.time_limit == 100
    # Without a time limit, an optimal agent reaches the goal of the 4x4 lake with probability 14/17.
    assert lake.optimal_values(1.0)[0].max() == pytest.approx(14 / 17)


def test_taxi_ends_only_where_it_delivers():
    taxi = mdp_from_gymnasium("Taxi-v4")
    assert taxi.terminals.sum() == 4
    assert taxi.optimal_values(1.0)[taxi.start > 0].max() == pytest.approx(20 - 5)


def test_an_environment_without_a_table_is_told_apart():
    with pytest.raises(TypeError, match="transition table"):
        mdp_from_gymnasium("Blackjack-v1")


class _Parts(gymnasium.Env):
    action_space = spaces.Discrete(2)

    def __init__(self, space, observation):
        self.observation_space, self.observation = space, observation

    def reset(self, *, seed=None, options=None):
        return self.observation, {}


@pytest.mark.parametrize(
    ("space", "observation", "state", "n_states"),
    [
        (spaces.Discrete(5, start=-2), np.int64(1), 3, 5),
        (spaces.Tuple([spaces.Discrete(3), spaces.Discrete(4, start=1)]), (2, 3), 2 * 4 + 2, 12),
        (spaces.MultiDiscrete([2, 3, 4]), np.array([1, 2, 3]), 23, 24),
        (spaces.MultiDiscrete([7]), np.array([5]), 5, 7),
    ],
)
def test_observations_are_counted_from_zero(space, observation, state, n_states):
    env = DiscreteEnv(_Parts(space, observation))
    assert env.reset() == state
    assert env.n_states == n_states


def test_ids_that_do_not_exist():
    with pytest.raises(ValueError, match="Unknown environment 'Nowhere-v0'"):
        make_discrete("Nowhere-v0")


def test_a_wrapper_that_changes_rewards_is_refused():
    lake = gymnasium.wrappers.TransformReward(gymnasium.make("FrozenLake-v1"), lambda reward: 10 * reward)
    with pytest.raises(
        InputTypeError, match="wrapper TransformReward may change the transitions or the rewards"
    ):
        mdp_from_gymnasium(lake)
    watched = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("FrozenLake-v1"))
    assert mdp_from_gymnasium(watched).n_states == 16
    drawn = gymnasium.make("FrozenLake-v1", render_mode="rgb_array_list")
    assert mdp_from_gymnasium(drawn).n_states == 16
