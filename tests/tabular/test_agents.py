from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from ebql import tabular
from ebql.environments import MDP, chain, mdp_from_gymnasium
from ebql.tabular import EBQL, REDQ, DoubleQLearning, History, Maxmin, QLearning, RandomisedPriors, learn
from ebql.tabular.agents import Agent
from ebql.tabular.rules import Rule
from ebql.tabular.schedules import inverse_visits

REFUSED = [
    (lambda: EBQL(1), "EBQL's ensemble size must be at least 2"),
    (lambda: DoubleQLearning("alternat"), "Unknown turn 'alternat'. Did you mean 'alternate'"),
    (lambda: EBQL(2, split="adaptive"), "ensemble size with an adaptive split must be at least 3, not 2"),
    (lambda: EBQL(0, split="adaptive"), "ensemble size with an adaptive split must be at least 3, not 0"),
    (lambda: EBQL(5, split=5), "EBQL's split must be below its ensemble size 5, not 5"),
    (lambda: EBQL(5, split=0), "split must be at least 1"),
    (lambda: EBQL(5, split="adaptiv"), "Unknown split 'adaptiv'. Did you mean 'adaptive'"),
    (lambda: REDQ(4, 5), "REDQ's subset size must be at most its ensemble size 4, not 5"),
    (lambda: REDQ(4, 0), "subset size must be at least 1"),
    (lambda: tabular.Maxmin(1), "Maxmin's ensemble size must be at least 2"),
    (lambda: tabular.CrossQLearning(1), "at least 2"),
    (lambda: tabular.EnsembleQLearning(1), "at least 2"),
    (lambda: tabular.AveragedQLearning(1), "snapshots must be at least 2"),
    (lambda: tabular.AveragedQLearning(3, period=0), "period must be at least 1"),
    (lambda: tabular.WeightedDoubleQLearning(0.0), "c must be a positive number"),
    (lambda: tabular.WeightedDoubleQLearning(float("nan")), "c must be a positive number"),
    (lambda: tabular.SelfCorrectingQLearning(-1.0), "beta must be a finite number of at least 0, not -1"),
    (lambda: tabular.BootstrappedQLearning(1), "Bootstrapped's ensemble size must be at least 2"),
    (lambda: tabular.BootstrappedQLearning(5, 1.0), "mask_probability must be below 1"),
    (lambda: tabular.SUNRISE(5, mask_probability=1.0), "mask_probability must be below 1"),
    (lambda: tabular.SUNRISE(5, temperature=-1.0), "temperature must be a finite number of at least 0"),
    (lambda: RandomisedPriors(5, 0.0), "prior_scale must be a positive number"),
    (lambda: RandomisedPriors(5, mask_probability=0.0), "mask_probability must be above 0 and at most 1"),
    (lambda: QLearning().exploring("thompson"), "QL cannot explore by thompson: it needs several tables"),
    (lambda: tabular.SpeedyQLearning().exploring("ucb"), "Speedy cannot explore by ucb"),
    (lambda: EBQL(3).exploring("usb"), "Unknown behaviour 'usb'. Did you mean 'ucb'"),
    (lambda: EBQL(3).exploring("ucb", -1.0), "width must be a finite number of at least 0"),
    (lambda: Agent("own", 1, Rule.SPEEDY), "SPEEDY needs an ensemble size of 2, not 1"),
    (lambda: Agent("own", 1, Rule.CROSS), "CROSS needs an ensemble size of at least 2, not 1"),
    (lambda: Agent("own", 3, Rule.WEIGHTED_DOUBLE, parameter=1.0), "needs an ensemble size of 2, not 3"),
    (lambda: Agent("own", 2, Rule.WEIGHTED_DOUBLE), "parameter must be a positive number"),
    (
        lambda: Agent("own", 3, Rule.SUBSET_MINIMUM),
        "parameter of SUBSET_MINIMUM must be a whole number from 1 to 3, not 0",
    ),
    (
        lambda: Agent("own", 3, Rule.SPLIT, parameter=3.0),
        "parameter of SPLIT must be a whole number from 1 to 2, not 3",
    ),
    (
        lambda: Agent("own", 3, Rule.AVERAGED, parameter=0.5),
        "parameter of AVERAGED must be a whole number of at least 1, not 0.5",
    ),
    (
        lambda: Agent("own", 1, Rule.ADAPTIVE_SPLIT),
        "ADAPTIVE_SPLIT needs an ensemble size of at least 3, not 1",
    ),
    (lambda: Agent("own", 0, Rule.MAXIMUM), "ensemble_size must be at least 1"),
    (lambda: tabular.WeightedQLearning(1), "WeightedQLearning's ensemble size must be at least 2"),
    (lambda: tabular.TEQLearning(5, 0.6), "TEQLearning's alpha must be at most 0.5, not 0.6"),
    (lambda: tabular.TEQLearning(5, 0), "TEQLearning's alpha must be a positive number"),
    (lambda: tabular.KEQLearning(5, -1), "KEQLearning's scale must be a positive number"),
    (lambda: tabular.OrderQLearning(3, 4), "index must be at most its ensemble size 3, not 4"),
    (lambda: tabular.RobustQLearning(3, -1), "RobustQLearning's rho must be a finite number of at least 0"),
    (lambda: tabular.CandidateQLearning(0), "CandidateQLearning's candidates must be at least 1"),
    (lambda: tabular.SmoothedQLearning(1.5), "SmoothedQLearning's smoothing must be at most 1, not 1.5"),
    (lambda: Agent("own", 3, Rule.CANDIDATES, parameter=2.0), "needs an ensemble size of 2, not 3"),
    (lambda: Agent("own", 2, Rule.K_ESTIMATOR), "parameter must be a positive number"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_makes_no_sense_is_one_clear_line(make, message):
    with pytest.raises(ValueError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_a_split_of_one_is_the_paper_s_agent():
    assert EBQL(7, split=1) == EBQL(7)
    assert EBQL(7).rule == Rule.ENSEMBLE


def test_labels_tell_agents_apart():
    agents = [EBQL(5), EBQL(5, 2), EBQL(5, "adaptive"), EBQL(5).exploring("ucb"), REDQ(5, 2), REDQ(5, 3)]
    agents += [tabular.WeightedDoubleQLearning(c) for c in (1, 100)]
    agents += [tabular.SelfCorrectingQLearning(beta) for beta in (2, 3)]
    agents += [tabular.AveragedQLearning(5, period) for period in (10, 20)]
    agents += [tabular.BootstrappedQLearning(5), tabular.BootstrappedQLearning(5).exploring("mean")]
    agents += [tabular.BootstrappedQLearning(5, 0.1), tabular.SUNRISE(5), tabular.SUNRISE(5, 1.0)]
    agents += [tabular.SUNRISE(5, ucb_width=2.0), RandomisedPriors(5), RandomisedPriors(5, 50.0)]
    agents += [tabular.TEQLearning(5), tabular.TEQLearning(5, 0.1), tabular.KEQLearning(5)]
    agents += [tabular.CandidateQLearning(), tabular.CandidateQLearning(3), tabular.OrderQLearning(5, 3)]
    agents += [tabular.AdaptiveOrderQLearning(5), tabular.AdaptiveOrderQLearning(6)]
    agents += [tabular.RobustQLearning(5), tabular.RobustQLearning(5, 2), tabular.SmoothedQLearning(0.1)]
    agents += [EBQL(5).exploring("ucb", 3.0), EBQL(5).exploring("ucb", 0.0), EBQL(5).exploring("thompson")]
    assert len({agent.label for agent in agents}) == len(agents)


def test_labels_say_how_an_agent_acts():
    assert EBQL(5).exploring("mean").label == "EBQL 5"
    assert EBQL(5).exploring("ucb").exploring("thompson").label == "EBQL 5 thompson"
    assert EBQL(5).exploring("ucb", 2.0).label == "EBQL 5 ucb 2"
    assert EBQL(5).exploring("ucb", 2.0).exploring("mean").label == "EBQL 5"
    assert EBQL(5).exploring("ucb", 2.0).exploring("mean") == EBQL(5)
    assert Maxmin(4).exploring("ucb").exploring("mean").label == "Maxmin 4"
    assert tabular.BootstrappedQLearning(5).exploring("thompson").label == "Bootstrapped 5"
    assert tabular.SUNRISE(5, ucb_width=2.0).label == "SUNRISE 5 λ 2"
    assert tabular.SUNRISE(5, ucb_width=2.0).exploring("mean").label == "SUNRISE 5 mean"
    assert tabular.SUNRISE(5, ucb_width=2.0).exploring("ucb", 3.0).label == "SUNRISE 5 ucb 3"


def learnt(agent, **settings) -> History:
    return learn(chain(0.0), agent, **{"episodes": 200, "seeds": 3, "epsilon": 1.0, **settings})


def test_only_the_adaptive_split_is_logged():
    lake = mdp_from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=1000))
    wandering = {"episodes": 3000, "seeds": 3, "epsilon": 1.0, "discount": 0.9}
    splits = learn(lake, EBQL(6, "adaptive"), **wandering).mean_splits
    assert np.all((splits > 1) & (splits <= 5))
    assert len(set(splits.tolist())) == 3
    # If all actions are equal, mistakes cost nothing: mostly one member selects and all others evaluate.
    assert np.all(learnt(EBQL(6, "adaptive")).mean_splits < 1.5)
    assert np.isnan(learnt(EBQL(6)).mean_splits).all()
    assert np.isnan(learnt(EBQL(6, 3)).mean_splits).all()


def test_what_is_acted_on_is_what_is_reported():
    agents = ((tabular.AveragedQLearning(4), 4), (tabular.SpeedyQLearning(), 1), (EBQL(4), 4), (Maxmin(4), 4))
    for agent, acting in agents:
        history = learnt(agent)
        start = history.world.decisions[0].state
        aggregate = np.min if agent == Maxmin(4) else np.mean
        expected = aggregate(history.tables[:, :acting], axis=1)
        np.testing.assert_array_equal(history.q_values(), expected)
        np.testing.assert_allclose(history.decision_values[:, -1, 0], expected[:, start, :2], atol=1e-12)


def test_speedy_overshoots_where_the_next_state_follows_by_chance():
    """The example of docs/algorithms.md: a state worth 10 follows the first with probability 0.05."""
    transitions, rewards = np.zeros((3, 1, 3)), np.zeros((3, 1, 3))
    transitions[0, 0, 1:] = 0.05, 0.95
    transitions[1:, 0, 2] = 1.0
    rewards[1, 0, 2] = 10.0
    start, terminals = np.array([1.0, 0.0, 0.0]), np.array([False, False, True])
    world = MDP(transitions, rewards, np.zeros_like(rewards), start, terminals)
    settings = {"seeds": 2000, "learning_rate": inverse_visits(0.8)}
    for episodes, speedy, plain in ((100, 1.8, 0.47), (1000, 0.5, 0.5)):
        for agent, expected in ((tabular.SpeedyQLearning(), speedy), (QLearning(), plain)):
            values = learn(world, agent, episodes=episodes, **settings).q_values()[:, 0, 0]
            assert values.mean() == pytest.approx(expected, abs=0.06)


def test_members_with_priors_differ_before_anything_is_learnt_and_agents_of_zeros_do_not():
    first = RandomisedPriors(4, 2.0).first_tables(50, 10, seed=3)
    assert first.shape == (50, 10, 4)
    assert abs(first.std() - 2.0) < 0.1
    np.testing.assert_array_equal(first, RandomisedPriors(4, 2.0).first_tables(50, 10, seed=3))
    assert not EBQL(4).first_tables(50, 10, seed=3).any()


def test_masks_give_members_different_experience():
    tables = learnt(tabular.BootstrappedQLearning(4), episodes=40).tables[0]
    assert len({table.tobytes() for table in tables}) == 4


def test_thompson_keeps_to_one_member_for_an_episode():
    """With random priors and no ε, every member has one greedy path; an episode follows one of them."""
    ice = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=1000)
    world, agent, most = mdp_from_gymnasium(ice), RandomisedPriors(3, 1.0), 30

    def length_of_path(q):
        state, length = 0, 0
        while not world.terminals[state] and length < most:
            state, length = world.model.successors[state, q[state].argmax(), 0], length + 1
        return length

    history = learn(world, agent, episodes=1, seeds=60, epsilon=0.0, learning_rate=0.0, max_steps=most)
    first = [agent.first_tables(world.n_states, world.n_actions, seed) for seed in history.seeds]
    by_member = [[length_of_path(tables[..., k]) for k in range(3)] for tables in first]
    followed = [length in own for length, own in zip(history.lengths[:, 0], by_member, strict=True)]
    assert all(followed)
    # A decoy: sometimes no member takes the path of the members' mean.
    assert sum(length_of_path(t.mean(-1)) not in own for t, own in zip(first, by_member, strict=True)) > 3


def test_maxmin_acts_on_the_minimum_of_its_members():
    """The mean prefers an action that one member knows to be bad; the minimum does not."""
    world = chain(0.0, std=0.0, actions=5)
    agent = replace(Maxmin(2), prior_scale=1.0)
    history = learn(world, agent, episodes=1, seeds=60, epsilon=0.0, learning_rate=0.0)
    first = np.array([agent.first_tables(world.n_states, world.n_actions, s)[0, :2] for s in history.seeds])
    left = first.min(-1).argmax(-1) == 0
    np.testing.assert_array_equal(history.lengths[:, 0] - 1, left)
    assert (left != (first.mean(-1).argmax(-1) == 0)).sum() > 3
