"""Deep agents on the Meta-Chain show the bias that the tables show."""

import numpy as np
import pytest

from ebql.deep.agent import DQN, EBQL
from ebql.environments import PAPER_MEANS

SEEDS = range(3)
# One-hot states and no hidden layer: each Q-value is a parameter of its own, so networks are tables.
# Uniform behaviour, as in the regime where the tables' ensembles lose their bias.
TABLE_LIKE = {
    "hidden": (),
    "discount": 1.0,
    "loss": "mse",
    "learning_rate": 0.01,
    "epsilon_end": 1.0,
    "update_period": 2,
    "target_period": 50,
    "replay_size": 20_000,
    "learning_starts": 200,
    "evaluation_period": 0,
    "action_masks": False,  # with two actions in A instead of ten, B is visited five times as often
}


def bias_of_risk(kind, **options):
    """Q̂ − Q* of the risky action in A over all chains, one number a seed."""
    starts = np.arange(0, 4 * len(PAPER_MEANS), 4)
    found = []
    for seed in SEEDS:
        agent = kind("ebql/MetaChain-v0", seed=seed, **TABLE_LIKE, **options).learn(5000)
        risky = agent.q_values(starts).mean(1)[:, 0]
        found.append((risky - PAPER_MEANS).mean())
    return np.array(found)


@pytest.fixture(scope="module")
def single():
    return bias_of_risk(DQN)


def test_dqn_overestimates_and_ensembles_that_see_their_own_data_hardly(single):
    """Each member learns from its own share of the transitions, which is what the theory assumes."""
    double = bias_of_risk(EBQL, ensemble_size=2, data="masked", mask_probability=0.5)
    ensemble = bias_of_risk(EBQL, ensemble_size=10, data="masked", mask_probability=0.1)
    assert single.min() > 0.3
    assert single.mean() > double.mean() + 0.1
    assert double.mean() > ensemble.mean() + 0.1
    assert abs(ensemble.mean()) < 0.2


def test_members_that_see_the_same_data_are_as_biased_as_one(single):
    """On tables, shared minibatches make members alike, and who is alike judges no better."""
    shared = bias_of_risk(EBQL, ensemble_size=5)
    assert shared.mean() == pytest.approx(single.mean(), abs=0.1)
