import numpy as np
import pytest

from ebql.environments import (
    bandit,
    chain,
    internet_ads,
    maxmin_chain,
    meta_chain,
    noisy_grid,
    repeated_bandit,
    roulette,
    sutton_barto_bias,
)


def test_the_meta_chain_is_the_papers():
    world = meta_chain()
    q = world.optimal_values(1.0)
    for decision in world.decisions:
        np.testing.assert_allclose(q[decision.state, :2], [decision.mean, 0.0])
        assert world.start[decision.state] == pytest.approx(1 / 6)
    assert [decision.mean for decision in world.decisions] == [-0.6, -0.4, -0.2, 0.2, 0.4, 0.6]
    assert sorted(set(world.action_counts.tolist())) == [1, 2, 10]
    assert world.reward_stds.max() == 1.0


def test_the_other_worlds():
    assert sutton_barto_bias().optimal_values(1.0)[0, 0] == pytest.approx(-0.1)
    assert chain(0.3, actions=1).optimal_values(1.0)[0, 0] == pytest.approx(0.3)
    np.testing.assert_allclose(bandit([1.0, 2.0], [0.5, 3.0]).optimal_values(1.0)[0], [1, 2])


def test_the_noisy_grid_is_van_hasselts():
    world = noisy_grid()
    q = world.optimal_values(0.95)
    # Four steps of -1 on average and then the goal: (5 - 4) / 5 = 0.2 a step.
    expected = 5 * 0.95**4 - sum(0.95**k for k in range(4))
    assert q[0].max() == pytest.approx(expected) == pytest.approx(0.36, abs=0.005)
    assert q[8].tolist() == [5.0] * 4
    assert q[0, 0] == pytest.approx(-1 + 0.95 * expected)  # a wall: nothing moves
    two_points = np.array([-12.0, 10.0])
    assert (world.reward_means[0, 0, 0], world.reward_stds[0, 0, 0]) == (two_points.mean(), two_points.std())
    assert noisy_grid(5).n_states == 26


def test_at_the_roulette_one_should_walk_away():
    world = roulette()
    q = world.optimal_values(0.95)[0]
    assert len(q) == 171
    assert q.argmax() == 170
    assert q[170] == 0
    assert q[0] == pytest.approx(-1 / 19)
    payoffs = np.array([35.0] + [-1.0] * 37)
    assert world.reward_stds[0, 0, 0] == pytest.approx(payoffs.std())
    assert world.reward_means[0, 0, 0] == pytest.approx(payoffs.mean())


def test_maxmins_chain_has_the_moments_of_its_uniform_rewards():
    world = maxmin_chain(-0.1)
    assert world.optimal_values(1.0)[0, :2].tolist() == [-0.1, 0.0]  # to leave at once is optimal
    assert maxmin_chain(0.1).optimal_values(1.0)[0, :2].tolist() == [0.1, 0.0]
    assert world.action_counts[1] == 8
    drawn = np.random.default_rng(0).uniform(-1, 1, 400_000)
    assert world.reward_stds.max() == pytest.approx(drawn.std(), rel=0.01)


def test_ads_are_clicked_at_their_rates():
    world = internet_ads(4, 0.02, 0.05)
    assert world.optimal_values(1.0)[0] == pytest.approx([0.02, 0.03, 0.04, 0.05])
    clicks = np.array([1.0] * 5 + [0.0] * 95)
    assert world.reward_stds[0, 3, 1] == pytest.approx(clicks.std())


def test_a_repeated_bandit_earns_its_best_arm_for_ever():
    world = repeated_bandit([1.0, 3.0], [0.5, 2.0], steps=50)
    np.testing.assert_allclose(world.optimal_values(0.9)[0], [1 + 0.9 * 30, 30])
    assert world.time_limit == 50
    assert world.reward_stds[0, :, 0].tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: roulette(0), "bets must be at least 1, not 0"),
        (lambda: internet_ads(0), "ads must be at least 1, not 0"),
        (lambda: internet_ads(3, 0.5, 0.2), "in order, not 0.5 and 0.2"),
        (lambda: noisy_grid(1), "size must be at least 2, not 1"),
        (lambda: repeated_bandit([]), "at least one mean"),
        (lambda: meta_chain([]), "at least one mean"),
        (lambda: chain(0.1, std=-1), "std must not be negative"),
        (lambda: chain(0.1, actions=0), "actions must be at least 1"),
        (lambda: chain(float("nan")), "reward_means must be finite"),
        (lambda: bandit([]), "at least one mean"),
        (lambda: bandit([1, 2], [1, 2, 3]), "one std, or one std per arm"),
    ],
)
def test_bad_parameters_are_one_clear_line(make, message):
    with pytest.raises(ValueError, match=message):
        make()
