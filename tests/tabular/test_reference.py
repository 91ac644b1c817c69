import gymnasium
import numpy as np
import pytest

from ebql.environments import MDP, chain, mdp_from_gymnasium, meta_chain
from ebql.tabular import QLearning, Schedule, inverse_visits, learn, linear
from ebql.tabular.reference import learn_plainly

SLIPPERY = mdp_from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=100_000))


def masked_world():
    """Six states, the last one terminal, and four actions: a random subset is legal in each state."""
    rng = np.random.default_rng(3)
    masks = rng.random((6, 4)) < 0.5
    masks[np.arange(6), rng.integers(0, 4, 6)] = True
    return MDP(
        transitions=rng.dirichlet(np.ones(6), (6, 4)),
        reward_means=np.where(masks, rng.normal(size=(6, 4)), 1e9),
        reward_stds=np.full((6, 4), 0.5),
        start=np.array([0.5, 0.5, 0, 0, 0, 0]),
        terminals=np.arange(6) == 5,
        action_masks=masks,
    )


@pytest.mark.parametrize(
    ("world", "epsilon", "learning_rate"),
    [
        (meta_chain(), Schedule(0.1), inverse_visits(0.8)),
        (meta_chain([0.3, -0.3], actions=3), inverse_visits(0.5), Schedule(0.1)),
        (SLIPPERY, linear(1.0, 0.1, 100), inverse_visits(1.0)),
        (masked_world(), Schedule(0.3), inverse_visits(0.8)),
    ],
    ids=["meta-chain", "short-chains", "frozen-lake", "masked"],
)
def test_the_kernel_equals_the_plain_algorithm_to_the_bit(any_agent, world, epsilon, learning_rate):
    kwargs = {"epsilon": epsilon, "learning_rate": learning_rate, "discount": 0.9, "episodes": 200}
    compiled = learn(world, any_agent, seeds=[5], **kwargs).tables[0]
    plain = learn_plainly(world, any_agent, seed=5, **kwargs)
    for member in range(any_agent.ensemble_size):
        for state, values in enumerate(plain[member]):
            assert compiled[member, state, world.exists[state]].tolist() == values


def test_the_kernel_equals_the_plain_algorithm_beyond_its_table_of_powers():
    kwargs = {"epsilon": Schedule(3.0, 0.7), "learning_rate": inverse_visits(0.8), "episodes": 5000}
    compiled = learn(chain(0.2), QLearning(), seeds=[1], **kwargs)
    assert compiled.lengths.shape[1] == 5000 > 4096
    plain = learn_plainly(chain(0.2), QLearning(), seed=1, **kwargs)
    for state, values in enumerate(plain[0]):
        assert compiled.tables[0, 0, state, : len(values)].tolist() == values
