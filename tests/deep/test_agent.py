import json
import shutil
import sys
import threading

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import SyncVectorEnv

import ebql
from ebql.deep.agent import DQN, EBQL, Agent, DoubleDQN
from ebql.deep.agents import AGENTS, AveragedDQN, Rainbow
from ebql.environments.exact.probes import PROBES, exact_q
from ebql.errors import InputError

KINDS = list(AGENTS.values())


def parameters(agent):
    return torch.cat([p.detach().flatten() for p in agent._learner.online.parameters()])


def few_members(kind):
    """Options that make an agent with many members or quantiles a fast one."""
    config = kind.config_type()
    few = {"ensemble_size": 3, "subset_size": 2, "snapshots": 3, "quantiles": 20, "implicit_quantiles": 16}
    return {name: least for name, least in few.items() if (getattr(config, name, None) or 0) > least}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("probe", PROBES)
def test_every_agent_finds_the_exact_values_of_every_probe(kind, probe):
    agent = kind(
        f"ebql/Probe{probe}-v0",
        hidden=(32,),
        own_layers=0,
        discount=0.5,
        learning_rate=5e-3,
        update_period=1,
        target_period=20,
        learning_starts=50,
        epsilon_start=1.0,
        epsilon_end=1.0,
        evaluation_period=0,
        v_min=-2.0,
        v_max=2.0,
        **few_members(kind),
    ).learn(350)
    observations, exact = exact_q(probe, discount=0.5)
    np.testing.assert_allclose(agent.q_values(observations).mean(1), exact, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_the_same_weights_and_another_one_others(kind, small):
    options = {**small, **few_members(kind)}
    first, second, other = (kind("CartPole-v1", seed=s, **options).learn(200) for s in (3, 3, 4))
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


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_an_observation_that_is_not_finite_is_refused(wrong, small):
    agent = DQN("CartPole-v1", **small)
    many = np.zeros((3, 4), np.float32)
    many[2, 1] = wrong
    for ask in (agent.predict, agent.q_values):
        with pytest.raises(InputError, match=rf"^The observation has the value {wrong}: .* must be finite"):
            ask(many[2])
        with pytest.raises(InputError, match=rf"^The observation in row 2 has the value {wrong}: "):
            ask(many)


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
        assert loaded.steps == 150
        assert loaded.evaluate(2) == agent.evaluate(2)
        records = []
        assert loaded.learn(60, callback=records.append).steps == 210
        assert records[-1]["epsilon"] == pytest.approx(agent.config.epsilon_end)


def test_a_loaded_agent_gathers_transitions_before_it_learns_again(small, tmp_path):
    """It knows how long it was trained, but its replay is empty."""
    agent = DQN("CartPole-v1", **{**small, "learning_starts": 50}).learn(150)
    loaded = DQN.load(agent.save(tmp_path / "agent"))
    before = loaded._learner.updates
    assert loaded.learn(49)._learner.updates == before
    assert loaded.learn(11)._learner.updates > before


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
    with pytest.raises(InputError, match="expects observations"):
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
    for kind in KINDS:
        assert getattr(ebql, kind.__name__) is kind
        assert kind.config_type.label() == kind.__name__
    with pytest.raises(AttributeError):
        _ = ebql.Nonsense


def test_without_torch_the_error_names_the_command(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ebql.deep.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "ebql\[deep\]"'):
        _ = ebql.EBQL


def test_steps_and_devices_that_make_no_sense_are_refused(small):
    with pytest.raises(InputError, match="steps must be at least 1"):
        DQN("CartPole-v1", **small).learn(0)
    with pytest.raises(InputError, match="Unknown device"):
        DQN("CartPole-v1", **small, device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="No CUDA"):
            DQN("CartPole-v1", **small, device="cuda")


class Shifted(gymnasium.ActionWrapper):
    """CartPole whose actions are 5 and 6."""

    def __init__(self, env):
        super().__init__(env)
        self.action_space = gymnasium.spaces.Discrete(2, start=5)

    def action(self, action):
        assert self.action_space.contains(action)
        return action - 5


def shifted():
    return Shifted(gymnasium.make("CartPole-v1"))


def test_random_actions_are_not_the_environments_random_numbers(small):
    observation = np.zeros(4, np.float32)
    drawn = []
    for seed in range(200):
        agent = DQN("CartPole-v1", **{**small, "seed": seed, "evaluation_epsilon": 1.0})
        generator, _ = gymnasium.utils.seeding.np_random(seed)
        drawn.append((agent.predict(observation)[0], generator.random(2)[1]))  # the first decides on ε
    assert abs(np.corrcoef(np.transpose(drawn))[0, 1]) < 0.3


def test_predictions_are_the_environments_own_actions(small, tmp_path):
    agent = DQN(shifted, **small, evaluation_epsilon=0.5)
    observations = np.random.default_rng(0).normal(size=(50, 4))
    path = agent.save(tmp_path / "agent")
    for one in (agent, DQN.load(path, environment=shifted)):
        assert set(one.predict(observations)[0]) == {5, 6}
        greedy = one.predict(observations, deterministic=True)[0]
        np.testing.assert_array_equal(greedy - 5, one.q_values(observations).mean(1).argmax(-1))
        assert len(one.evaluate(2).returns) == 2
    with pytest.raises(InputError, match=r"2 actions starting at 5.*2 starting at 0"):
        agent.evaluate(1, environment="CartPole-v1")
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    mean, _ = evaluation.evaluate_policy(agent, shifted(), n_eval_episodes=2, warn=False)
    assert mean > 0


@pytest.mark.parametrize(
    "make",
    [lambda: gymnasium.make("CartPole-v1"), lambda: gymnasium.make_vec("CartPole-v1", num_envs=2)],
    ids=["single", "vector"],
)
def test_evaluating_in_the_training_environment_leaves_training_alone(make, small):
    quiet, environment = DQN(make(), **small).learn(150).learn(100), make()
    watched = DQN(environment, **small).learn(150)
    watched.evaluate(3, environment=environment)
    watched.measure_bias(environment, episodes=2)
    watched.learn(100)
    assert torch.equal(parameters(quiet), parameters(watched))


def test_an_instance_that_cannot_be_made_again_is_copied_for_evaluations(small):
    environment, records = shifted(), []  # its wrapper does not record how it was made
    options = {**small, "evaluation_period": 50, "evaluation_episodes": 2}
    agent = DQN(environment, **options).learn(100, callback=records.append)
    assert [record["step"] for record in records if "evaluation/return" in record] == [50, 100]
    agent.evaluate(1, environment=environment)
    quiet = DQN(shifted(), **small).learn(100)
    assert torch.equal(parameters(agent), parameters(quiet))


def test_an_environment_that_cannot_be_made_again_trains_without_evaluations(small):
    environment = shifted()
    environment.unwrapped.window = threading.Lock()  # which no copy can have
    options = {**small, "evaluation_period": 50}
    records = []
    agent = DQN(environment, **options)
    with pytest.warns(UserWarning, match="Training without evaluations"):
        agent.learn(100, callback=records.append)
    assert not any("evaluation/return" in record for record in records)
    with pytest.raises(InputError, match="trains in this environment"):
        agent.evaluate(1, environment=environment)
    with pytest.raises(InputError, match="must not be the environment"):
        DQN(environment, evaluation_environment=environment, **options)
    given = DQN(shifted(), evaluation_environment=shifted(), **{**options, "evaluation_episodes": 1})
    given.learn(100, callback=records.append)
    assert [r["step"] for r in records if "evaluation/return" in r] == [50, 100]


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make_vec(
            "CartPole-v1",
            num_envs=2,
            vectorization_mode="sync",
            wrappers=[gymnasium.wrappers.FlattenObservation],
        ),
        lambda: gymnasium.wrappers.vector.RecordEpisodeStatistics(
            gymnasium.make_vec("CartPole-v1", num_envs=2)
        ),
        lambda: gymnasium.vector.SyncVectorEnv([shifted, shifted]),
    ],
    ids=["wrappers", "vector wrapper", "no spec"],
)
def test_a_wrapped_vector_is_not_evaluated_in_something_else(make, small):
    with pytest.raises(InputError, match="needs an environment"):
        DQN(make(), **small).evaluate(1)


@pytest.mark.parametrize("mode", ["sync", "vector_entry_point"])
def test_evaluations_keep_the_options_of_a_vector(mode, small):
    environment = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode=mode, max_episode_steps=5)
    assert DQN(environment, **small).evaluate(3).lengths == (5, 5, 5)


def test_observations_with_odd_memory_are_read(small):
    agent = DQN("CartPole-v1", **small)
    observation = np.array([0.1, 0.2, -0.1, 0.3], np.float32)
    backwards = observation[::-1].copy()[::-1]
    frozen = observation.copy()
    frozen.flags.writeable = False
    for same in (backwards, frozen, observation.astype(">f4")):
        np.testing.assert_array_equal(agent.q_values(same), agent.q_values(observation))


def test_seeds_and_tolerances_out_of_range_are_refused(small):
    agent = DQN("CartPole-v1", **small)
    with pytest.raises(InputError, match="seed must be at least 0"):
        agent.evaluate(1, seed=-1)
    for tolerance in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="tolerance must lie between 0 and 1"):
            agent.measure_bias(tolerance=tolerance)


def test_a_torso_too_large_for_its_images_is_refused(small):
    with pytest.raises(InputError, match="nature needs images of at least 36 × 36 pixels, not 10 × 10"):
        DQN("MinAtar/Breakout-v1", **small, torso="nature")


def test_a_loaded_run_goes_on_counting(small, tmp_path):
    agent = DQN("CartPole-v1", **small).learn(150, out=tmp_path / "run")
    loaded = DQN.load(tmp_path / "run")
    assert loaded.steps == 150
    assert loaded.evaluate(2) == agent.evaluate(2)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["preset"] == "plain"


def test_a_loaded_agent_learns_from_other_episodes_and_resumes_them(small, tmp_path):
    random = {**small, "epsilon_start": 1.0, "epsilon_end": 1.0}

    def seen(agent):
        replay = agent._training.replay
        return replay.gather(np.arange(100)).observations

    agent = DQN("CartPole-v1", **random).learn(150)
    saved = agent.save(tmp_path / "agent.safetensors")
    loaded, again = (DQN.load(saved).learn(150, out=tmp_path / name) for name in ("loaded", "again"))
    assert not np.array_equal(seen(loaded), seen(agent))
    np.testing.assert_array_equal(seen(again), seen(loaded))
    resumed = DQN.resume(tmp_path / "again", steps=400)
    assert torch.equal(parameters(resumed), parameters(loaded.learn(100)))


def test_a_function_that_returns_one_instance_again_is_refused(small):
    environment = gymnasium.make("CartPole-v1")
    with pytest.raises(InputError, match="same environment twice: let it make a new one"):
        DQN(lambda: environment, **small, envs=2)
    agent = DQN(lambda: environment, **{**small, "evaluation_period": 50, "evaluation_episodes": 1})
    with pytest.raises(InputError, match="trains in this environment: pass a function that makes a new one"):
        agent.learn(10)
    assert agent.steps == 0
    other = gymnasium.make("CartPole-v1")
    agent = DQN("CartPole-v1", evaluation_environment=lambda: other, **{**small, "evaluation_period": 50})
    with pytest.raises(InputError, match="same environment twice: let it make a new one"):
        agent.learn(10)
    assert agent.steps == 0
    agent = DQN("CartPole-v1", **small).learn(10)
    wrapped = gymnasium.wrappers.TimeLimit(agent._lanes._environments[0].unwrapped, 100)
    with pytest.raises(InputError, match="trains in this environment: pass a function that makes a new one"):
        agent.measure_bias(lambda: wrapped, episodes=1)
    agent.learn(10)  # the refused function has not closed or moved the environment in training


def test_a_vector_environment_of_one_instance_is_refused(small):
    environment = gymnasium.make("CartPole-v1")
    with pytest.raises(InputError, match="returned the same environment again: let it make a new one"):
        DQN(SyncVectorEnv([lambda: environment] * 2), **small)
    options = {**small, "evaluation_period": 50}
    agent = DQN(SyncVectorEnv([lambda: environment]), evaluation_environment=environment, **options)
    with pytest.raises(InputError, match="agent trains in this environment"):
        agent.learn(10)
    assert agent.steps == 0


def test_a_finished_run_says_so(small, tmp_path):
    DQN("CartPole-v1", **small).learn(100, out=tmp_path / "run")
    for steps in (50, 100):
        with pytest.raises(InputError, match="already finished at step 100"):
            DQN.resume(tmp_path / "run", steps=steps)
    assert DQN.resume(tmp_path / "run").steps == 100


def test_a_run_without_its_checkpoints_keeps_its_metrics(tmp_path):
    options = {"hidden": (8,), "learning_starts": 10, "evaluation_period": 0, "log_period": 20}
    DQN("CartPole-v1", preset="plain", **options).learn(60, out=tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    with pytest.raises(InputError, match="were deleted: it can't be trained further"):
        DQN.resume(tmp_path / "run", steps=100)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_an_agent_that_would_never_explore_is_refused():
    with pytest.raises(InputError, match="never explore: raise epsilon-start or epsilon-end, or use noisy"):
        DQN("CartPole-v1", epsilon_start=0.0, epsilon_end=0.0)
    with pytest.raises(InputError, match="never explore: raise epsilon-start, epsilon-end or ucb-width"):
        EBQL("CartPole-v1", epsilon_start=0.0, epsilon_end=0.0, exploration="ucb", ucb_width=0.0)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (EBQL, {"ensemble_size": 10**11}),
        (EBQL, {"ensemble_size": 2**62}),
        (AveragedDQN, {"snapshots": 10**9}),
        (Rainbow, {"atoms": 10**6, "hidden": (10**6,)}),
    ],
)
def test_networks_that_do_not_fit_into_memory_are_refused(kind, options):
    with pytest.raises(InputError, match="lower hidden, atoms, quantiles, ensemble-size or snapshots"):
        kind("CartPole-v1", preset="plain", **options)


def test_loading_into_another_environment_is_refused(tmp_path):
    path = DQN("CartPole-v1", preset="plain", hidden=(8,)).save(tmp_path / "agent")
    with pytest.raises(InputError, match="this environment has"):
        DQN.load(path, environment="Acrobot-v1")
