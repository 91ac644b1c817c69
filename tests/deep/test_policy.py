import numpy as np
import pytest
import torch

from ebql.deep.agents import EBQL, BootstrappedDQN, MaxminDQN
from ebql.deep.config.base import Ensemble
from ebql.deep.policy import Explorer, aggregate, epsilon_greedy, greedy_actions, random_actions, upper_bounds

# Means 2, 3 and 2.5, spreads 0, 1 and 2.
Q = torch.tensor([[[2.0, 2.0, 0.5], [2.0, 4.0, 4.5]]])


def explorer(exploration, n_lanes=1, **options):
    ensemble = Ensemble(size=2, exploration=exploration, **options)
    return Explorer(ensemble, n_lanes, np.random.default_rng(0))


def test_the_greedy_action_is_that_of_the_mean():
    # Two of three members prefer action 0; the mean prefers action 1.
    q = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]]])
    assert greedy_actions(q, pessimistic=False).tolist() == [1]


def test_pessimists_do_what_all_members_grant():
    # The mean prefers action 1, whose minimum is the lowest.
    q = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.5, 9.0]]])
    assert greedy_actions(q, pessimistic=True).tolist() == [0]
    assert explorer("epsilon", pessimistic=True).preferred(q).tolist() == [0]
    assert aggregate(q[0].numpy(), 0, pessimistic=True).tolist() == [0.5, 0.0]
    assert aggregate(q[0].numpy(), 0, pessimistic=False).tolist() == pytest.approx([2.5 / 3, 3.0])


def test_an_upper_bound_adds_the_spread():
    assert upper_bounds(Q, 1.0).tolist() == [[2.0, 4.0, 4.5]]
    assert explorer("epsilon").preferred(Q).tolist() == [1]
    assert explorer("ucb", ucb_width=1.0).preferred(Q).tolist() == [2]
    assert explorer("ucb", ucb_width=0.0).preferred(Q).tolist() == [1]


def test_each_lane_follows_its_member_until_its_episode_ends():
    q = torch.tensor([[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]]).expand(400, 2, 3)
    one = explorer("thompson", 400)
    first = one.members.copy()
    assert one.preferred(q).tolist() == [2 * member for member in first]
    assert abs(first.mean() - 0.5) < 0.1
    for lane in range(0, 400, 2):
        one.begin_episode(lane)
    changed = one.members != first
    assert not changed[1::2].any()
    assert abs(changed[::2].mean() - 0.5) < 0.15


def test_who_is_followed_comes_back():
    one, other = explorer("thompson", 50), explorer("thompson", 50)
    one.begin_episode(3)
    one.members[:] = 1 - one.members
    other.restore(one.state())
    np.testing.assert_array_equal(one.members, other.members)
    assert explorer("ucb").state() == {}


def actions_taken(kind, small, **options):
    """The actions of an agent that neither learns nor draws random actions, and its members' values;
    discounts of 0 end episodes."""
    options = {**small, "learning_starts": 400, "epsilon_start": 0.0, "epsilon_end": 0.0, **options}
    agent = kind("CartPole-v1", ensemble_size=3, **options).learn(400)
    columns = agent._training.replay.state()
    return columns["actions"], agent.q_values(columns["observations"]), columns["discounts"]


def test_training_acts_on_the_upper_bound(small):
    actions, q, _ = actions_taken(EBQL, small, exploration="ucb", ucb_width=3.0)
    np.testing.assert_array_equal(actions, (q.mean(1) + 3 * q.std(1)).argmax(-1))


@pytest.mark.parametrize("hidden", [(16, 16), (256, 256)], ids=["by NumPy", "by PyTorch"])
def test_maxmin_trains_and_plays_on_the_minimum(small, hidden):
    # An ε of 0 is refused: nothing would explore. With this seed, mean and minimum differ in many states.
    options = {"epsilon_start": 1e-12, "epsilon_end": 1e-12, "learning_starts": 450, "seed": 8}
    actions, q, _ = actions_taken(MaxminDQN, small, hidden=hidden, **options)
    np.testing.assert_array_equal(actions, q.min(1).argmax(-1))
    assert (actions != q.mean(1).argmax(-1)).sum() > 100
    agent = MaxminDQN("CartPole-v1", ensemble_size=3, **{**small, "hidden": hidden, "seed": 8})
    observations = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    q = agent.q_values(observations)
    np.testing.assert_array_equal(agent.predict(observations, deterministic=True)[0], q.min(1).argmax(-1))
    assert (q.min(1).argmax(-1) != q.mean(1).argmax(-1)).any()


def test_training_follows_one_member_an_episode(small):
    # With this seed the members, and their mean, disagree in every episode.
    actions, q, discounts = actions_taken(BootstrappedDQN, small, learning_starts=450, seed=8)
    ends = np.flatnonzero(discounts == 0) + 1

    def agreeing(preferred):
        finished = np.split(preferred == actions[:, None], ends)[:-1]
        return np.array([same.all(0) for same in finished])

    followed = agreeing(q.argmax(-1))
    assert (followed.sum(1) == 1).all()
    assert set(followed.argmax(1)) == {0, 1, 2}
    assert not agreeing(q.mean(1, keepdims=True).argmax(-1)).any()


def test_an_illegal_action_is_never_preferred():
    # Action 3 has the largest mean, spread and minimum of all, but it is illegal.
    q = torch.cat([Q, torch.tensor([[[90.0], [99.0]]])], -1)
    legal = np.array([[True, True, True, False]])
    assert explorer("epsilon").preferred(q, legal).tolist() == [1]
    assert explorer("epsilon", pessimistic=True).preferred(q, legal).tolist() == [0]
    assert explorer("ucb", ucb_width=1.0).preferred(q, legal).tolist() == [2]
    assert explorer("thompson").preferred(q, legal).tolist() in ([0], [2])
    assert greedy_actions(q[:, :1], pessimistic=False, legal=legal).tolist() == [0]


def test_random_actions_are_uniform_over_the_legal_ones():
    legal = np.array([[False, True, False, True], [True, False, False, False]]).repeat(3000, 0)
    actions = epsilon_greedy(np.full(6000, 2), 6000, 4, 1.0, np.random.default_rng(0), legal)
    assert np.bincount(actions[:3000], minlength=4)[[0, 2]].tolist() == [0, 0]
    assert abs(np.count_nonzero(actions[:3000] == 1) - 1500) < 5 * np.sqrt(750)
    assert set(actions[3000:]) == {0}
    choice = np.random.default_rng(1).random(100)
    everything = random_actions(choice, 4, np.ones((100, 4), bool))
    assert everything.tolist() == random_actions(choice, 4).tolist()
