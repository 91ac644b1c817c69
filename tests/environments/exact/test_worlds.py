import numpy as np
import pytest

from ebql.environments import bandit, chain, meta_chain, sutton_barto_bias


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


@pytest.mark.parametrize(
    ("make", "message"),
    [
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
