import sys

import gymnasium
import numpy as np
import pytest
import torch

import ebql
from ebql.deep.agent import AGENTS, DQN, EBQL, Agent, DoubleDQN
from ebql.environments.probes import PROBES, exact_q
from ebql.errors import InputError

KINDS = list(AGENTS.values())


def parameters(agent):
    return torch.cat([p.detach().flatten() for p in agent._learner.online.parameters()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("probe", PROBES)
def test_every_agent_finds_the_exact_values_of_every_probe(kind, probe):
    agent = kind(
        f"ebql/Probe{probe}-v0",
        hidden=(32,),
        own_layers=0,
        discount=0.5,
        learning_rate=3e-3,
        update_period=1,
        target_period=20,
        learning_starts=50,
        epsilon_end=1.0,
        evaluation_period=0,
    ).learn(700)
    observations, exact = exact_q(probe, discount=0.5)
    np.testing.assert_allclose(agent.q_values(observations).mean(1), exact, atol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_the_same_weights_and_another_one_others(kind, small):
    first, second, other = (kind("CartPole-v1", seed=s, **small).learn(200) for s in (3, 3, 4))
    assert torch.equal(parameters(first), parameters(second))
    assert not torch.equal(parameters(first), parameters(other))


@pytest.mark.parametrize(
    "options",
    [
        {"members": "cycle"},
        {"data": "masked"},
        {"data": "independent"},
        {"share_torso": False},
        {"torso_gradient": "mean"},
        {"n_step": 3, "optimiser": "rmsprop", "loss": "mse", "reward_clip": 0.5, "envs": 3},
    ],
    ids=str,
)
def test_every_option_of_ebql_learns(options, small):
    agent = EBQL("CartPole-v1", ensemble_size=3, **small, **options)
    before = parameters(agent)
    after = parameters(agent.learn(200))
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)


def test_a_second_learn_goes_on_where_the_first_ended(small):
    once = DQN("CartPole-v1", **small).learn(200)
    twice = DQN("CartPole-v1", **small).learn(120).learn(80)
    assert twice.steps == 200
    assert torch.equal(parameters(once), parameters(twice))


@pytest.mark.parametrize(
    "environment", ["CartPole-v1", "FrozenLake-v1", "MinAtar/Breakout-v1"], ids=["box", "discrete", "image"]
)
def test_predictions_and_values_have_the_promised_shapes(environment, small):
    agent = EBQL(environment, ensemble_size=3, **small)
    observation = agent._lanes.observation_space.sample()
    n_actions = agent.n_actions
    assert agent.q_values(observation).shape == (3, n_actions)
    action, state = agent.predict(observation, deterministic=True)
    assert np.shape(action) == ()
    assert action == agent.q_values(observation).mean(0).argmax()
    assert state is None
    many = np.stack([observation] * 4)
    assert agent.q_values(many).shape == (4, 3, n_actions)
    assert agent.predict(many)[0].shape == (4,)


def test_an_observation_of_another_shape_is_refused(small):
    with pytest.raises(InputError, match=r"shape \(4,\), not \(5,\)"):
        DQN("CartPole-v1", **small).predict(np.zeros(5))


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_agent_is_the_saved_one(kind, small, tmp_path):
    agent = kind("CartPole-v1", **small).learn(150)
    path = agent.save(tmp_path / "agent")
    observation = np.array([0.1, 0.2, -0.1, 0.3], np.float32)
    for loaded in (kind.load(tmp_path / "agent"), Agent.load(path)):
        assert type(loaded) is kind
        np.testing.assert_array_equal(loaded.q_values(observation), agent.q_values(observation))
        assert loaded.config == agent.config
        assert loaded.evaluate(2, seed=0) == agent.evaluate(2, seed=0)
        assert loaded.learn(60).steps == 60


def test_what_is_no_saved_agent_or_another_one_is_refused(small, tmp_path):
    path = DoubleDQN("CartPole-v1", **small).save(tmp_path / "double")
    with pytest.raises(InputError, match="double-dqn agent, not ebql: use DoubleDQN"):
        EBQL.load(path)
    with pytest.raises(InputError, match="no saved agent"):
        EBQL.load(tmp_path / "nothing")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read"):
        DoubleDQN.load(path)
    with pytest.raises(InputError, match="not a run folder"):
        DoubleDQN.load(tmp_path)


def test_an_agent_refuses_an_environment_of_another_form(small, tmp_path):
    path = DQN("CartPole-v1", **small).save(tmp_path / "agent")
    with pytest.raises(InputError, match="knows observations"):
        DQN.load(path, environment="Acrobot-v1").learn(10)


def test_environments_come_as_ids_objects_functions_and_vectors(small):
    def make():
        return gymnasium.make("CartPole-v1")

    for environment in (make(), make, gymnasium.make_vec("CartPole-v1", num_envs=3)):
        agent = DQN(environment, **small).learn(120)
        assert 120 <= agent.steps < 123
        assert len(agent.evaluate(3).returns) == 3


def test_more_environments_keep_the_ratio_of_updates_to_steps(small):
    updates = [DQN("CartPole-v1", envs=n, **small).learn(240)._learner.updates for n in (1, 3, 8)]
    assert max(updates) - min(updates) <= 2


def test_evaluation_is_repeatable_and_does_not_disturb_training(small):
    quiet = DQN("CartPole-v1", **small).learn(200)
    records = []
    options = {**small, "evaluation_period": 50, "evaluation_episodes": 3}
    watched = DQN("CartPole-v1", **options).learn(200, callback=records.append)
    assert torch.equal(parameters(quiet), parameters(watched))
    evaluations = [record for record in records if "evaluation/return" in record]
    assert [record["step"] for record in evaluations] == [50, 100, 150, 200]
    assert watched.evaluate(3).to_json() == {k: v for k, v in evaluations[-1].items() if k != "step"}


def test_stable_baselines_own_evaluation_runs_on_our_agents(small):
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    agent = EBQL("CartPole-v1", **small)
    environment = monitor.Monitor(gymnasium.make("CartPole-v1"))
    mean, _ = evaluation.evaluate_policy(agent, environment, n_eval_episodes=3)
    assert mean > 0


def test_the_agents_are_importable_from_the_top():
    assert (ebql.DQN, ebql.DoubleDQN, ebql.EBQL) == (DQN, DoubleDQN, EBQL)
    with pytest.raises(AttributeError):
        _ = ebql.Nonsense


def test_without_torch_the_error_names_the_command(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ebql.deep.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "ebql\[deep\]"'):
        _ = ebql.EBQL


def test_steps_and_devices_that_make_no_sense_are_refused(small):
    with pytest.raises(InputError, match="steps must be positive"):
        DQN("CartPole-v1", **small).learn(0)
    with pytest.raises(InputError, match="Unknown device"):
        DQN("CartPole-v1", **small, device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="No CUDA"):
            DQN("CartPole-v1", **small, device="cuda")
