import gymnasium
import numpy as np
import pytest
import torch

from ebql.deep.agent import DQN, EBQL, Agent
from ebql.deep.networks.normalisation import Normaliser
from ebql.errors import InputError


def test_mean_and_spread_are_those_of_all_observations():
    rng = np.random.default_rng(0)
    rows = rng.normal([3.0, -100.0], [0.5, 20.0], (57, 2)).astype(np.float32)
    normaliser = Normaliser((2,))
    for part in np.split(rows, [1, 4, 30]):
        normaliser.update(part)
    expected = (rows - rows.mean(0, dtype=np.float64)) / rows.std(0, dtype=np.float64)
    np.testing.assert_allclose(normaliser(torch.from_numpy(rows)).numpy(), expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(normaliser(torch.from_numpy(rows)), torch.from_numpy(normaliser.flat(rows)))


def test_it_changes_nothing_before_the_first_observation_and_clips_what_is_far_away():
    normaliser = Normaliser((1,))
    assert normaliser(torch.tensor([[7.0]])).item() == 7.0
    normaliser.update(np.array([[1.0], [3.0]]))  # mean 2, spread 1
    scaled = normaliser(torch.tensor([[2.0], [4.0], [99.0], [-99.0]]))
    torch.testing.assert_close(scaled, torch.tensor([[0.0], [2.0], [10.0], [-10.0]]))


def test_a_constant_element_stays_zero():
    normaliser = Normaliser((1,))
    normaliser.update(np.full((5, 1), 4.0))
    assert normaliser(torch.tensor([[4.0]])).item() == 0.0


class Scaled(gymnasium.ObservationWrapper):
    """CartPole in other units."""

    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)

    def observation(self, observation):
        return (observation * np.float32(1000) + np.float32(50)).astype(np.float32)


def test_units_do_not_matter_to_what_is_learnt(small):
    small = {**small, "normalise_observations": True}
    plain = DQN("CartPole-v1", **small).learn(150)
    scaled = DQN(Scaled, **small).learn(150)
    states = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32) * 0.05
    np.testing.assert_allclose(
        scaled.q_values(states * 1000 + 50), plain.q_values(states), rtol=0.05, atol=0.05
    )


@pytest.mark.parametrize("options", [{}, {"share_torso": False}, {"data": "independent", "envs": 2}])
def test_it_is_part_of_files_and_checkpoints_and_resumes_to_the_same_bits(options, small, tmp_path):
    options = {**small, "ensemble_size": 3, "normalise_observations": True, **options}
    whole = EBQL("CartPole-v1", **options).learn(160, out=tmp_path / "whole")

    def stop(record):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        EBQL("CartPole-v1", **{**options, "log_period": 130}).learn(160, out=tmp_path / "cut", callback=stop)
    resumed = EBQL.resume(tmp_path / "cut")
    loaded = Agent.load(whole.save(tmp_path / "agent"))
    state = whole._learner.state()
    assert state["observations.count"].item() == whole.steps + options.get("envs", 1)  # and the first ones
    for other in (resumed, loaded):
        for name, tensor in state.items():
            np.testing.assert_array_equal(other._learner.state()[name], tensor, err_msg=name)
    rows = np.random.default_rng(0).normal(size=(4, 4))
    np.testing.assert_array_equal(loaded.q_values(rows), whole.q_values(rows))
    before = whole._learner.state()["observations.mean"].copy()
    assert whole.evaluate(2, seed=0).returns == loaded.evaluate(2, seed=0).returns
    np.testing.assert_array_equal(whole._learner.state()["observations.mean"], before)


def test_small_networks_act_on_the_same_values(small):
    agent = EBQL("CartPole-v1", ensemble_size=3, **{**small, "normalise_observations": True}).learn(100)
    training = agent._training
    assert training._numpy_values is not None
    rows = np.random.default_rng(0).normal(size=(1, 4)).astype(np.float32)
    np.testing.assert_allclose(
        training._numpy_values(rows), agent.q_values(rows).mean(1), rtol=1e-5, atol=1e-6
    )


def test_data_is_normalised_by_its_own_mean_and_spread(small):
    rng = np.random.default_rng(0)
    data = {
        "observations": rng.normal(5, 2, (60, 4)).astype(np.float32),
        "actions": rng.integers(0, 2, 60),
        "rewards": np.ones(60),
        "next_observations": rng.normal(5, 2, (60, 4)).astype(np.float32),
        "terminations": np.zeros(60, bool),
    }
    agent = DQN("CartPole-v1", **{**small, "normalise_observations": True}).learn_offline(data, 10)
    mean = agent._learner.state()["observations.mean"]
    np.testing.assert_allclose(mean, data["observations"].mean(0), rtol=1e-5)


@pytest.mark.parametrize("environment", ["MinAtar/Breakout-v1", "FrozenLake-v1"])
def test_images_and_categories_are_refused(environment):
    with pytest.raises(InputError, match="normalise-observations is for vectors of numbers"):
        DQN(environment, preset="plain", normalise_observations=True)
