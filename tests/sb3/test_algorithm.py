"""EBQL as an algorithm of Stable-Baselines3, with the real library."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.dqn import MlpPolicy

from ebql import deep, measure_bias
from ebql.deep.reference import Batch, EnsembleNetwork, ReferenceLearner, ebql
from ebql.deep.replay.ring import Transitions
from ebql.errors import InputError, InputTypeError
from ebql.sb3 import EBQL, BiasCallback

torch.set_num_threads(1)

SMALL = {
    "ensemble_size": 3,
    "buffer_size": 500,
    "learning_starts": 20,
    "gamma": 0.75,
    "policy_kwargs": {"net_arch": [8, 8]},
    "seed": 0,
    "device": "cpu",
}


@pytest.fixture
def model():
    return EBQL("MlpPolicy", "CartPole-v1", **SMALL)


def random_batch(model, rows=16, seed=0):
    """Return a batch of small fractions, whose sums and products are exact in whatever order."""
    rng = np.random.default_rng(seed)

    def fractions(*shape):
        return torch.from_numpy(rng.integers(-4, 5, shape) / 4).float()

    shape = model.observation_space.shape
    dones = torch.from_numpy(rng.integers(0, 2, (rows, 1))).float()
    actions = torch.from_numpy(rng.integers(0, 2, (rows, 1)))
    return ReplayBufferSamples(
        fractions(rows, *shape), actions, fractions(rows, *shape), dones, fractions(rows, 1), None
    )


def as_reference(batch, gamma):
    discounts = (1 - batch.dones[:, 0]) * gamma
    return Batch(
        batch.observations, batch.actions[:, 0], batch.rewards[:, 0], discounts, batch.next_observations
    )


def test_targets_equal_those_of_our_own_agent_to_the_last_digit(model):
    """Both get the same weights, small fractions, of which every order of sums gives the same bits."""
    agent = deep.EBQL(
        "CartPole-v1",
        preset="plain",
        ensemble_size=3,
        hidden=(8, 8),
        own_layers=2,
        share_torso=False,
        discount=0.75,
    )
    learner, generator = agent._learner, torch.Generator().manual_seed(0)
    for ours, theirs in ((learner.online, model.q_net), (learner.target, model.q_net_target)):
        for member, network in enumerate(theirs.networks):
            linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
            own = [layer for stage in ours.stages[1:] for layer in stage.layers]
            for to, from_ in zip(linear, own, strict=True):
                with torch.no_grad():
                    weight = torch.randint(-2, 3, from_.weight[member].shape, generator=generator) / 4
                    bias = torch.randint(-2, 3, from_.bias[member].shape, generator=generator) / 4
                    from_.weight[member], from_.bias[member] = weight, bias
                    to.weight.copy_(weight.T)
                    to.bias.copy_(bias[0])
    learner._prepare_weights()
    batch = random_batch(model)
    reference = as_reference(batch, 0.75)
    empty = torch.empty(0)
    transitions = Transitions(
        observations=reference.observations,
        actions=reference.actions,
        rewards=reference.rewards,
        discounts=reference.discounts,
        next_observations=reference.next_observations,
        masks=torch.ones(16, 0, dtype=torch.bool),
        weights=empty,
        legal=empty,
    )
    _, after = learner._outputs_and_next(learner._plans[0], transitions)
    expected = learner.output.target(
        reference.rewards, reference.discounts, learner.rule.bootstrap(after)
    ).detach()
    targets = model.targets(batch)
    assert torch.equal(targets, expected)
    assert not torch.equal(targets[:, 0], targets[:, 1])
    # The same from the whiteboard.
    online, target = (net.members(batch.next_observations) for net in (model.q_net, model.q_net_target))
    by_hand = reference.rewards[:, None] + reference.discounts[:, None] * ebql(online, target)
    assert torch.equal(targets, by_hand.detach())


def test_updates_equal_those_of_the_reference(model):
    network = EnsembleNetwork(4, 8, 2, 3, share_torso=False)
    learner = ReferenceLearner(network, ebql, learning_rate=model.learning_rate)
    for own, target in ((model.q_net, network), (model.q_net_target, learner.target)):
        for k, member in enumerate(own.networks):
            target.torsos[k].load_state_dict(member[0].state_dict())
            target.heads[k].load_state_dict(
                {f"{i}.{name}": x for i in (0, 2) for name, x in member[i + 2].state_dict().items()}
            )
    batches = [random_batch(model, seed=seed) for seed in range(3)]
    model._setup_learn(0)
    given = iter(batches)
    model.replay_buffer.sample = lambda batch_size, env: next(given)
    model.train(3, 16)
    for batch in batches:
        learner.update(as_reference(batch, 0.75))
    for k, member in enumerate(model.q_net.networks):
        torch.testing.assert_close(member[0].weight, network.torsos[k].weight, rtol=0, atol=1e-7)
        torch.testing.assert_close(member[4].bias, network.heads[k][2].bias, rtol=0, atol=1e-7)


def test_n_step_discounts_are_those_of_the_buffer(model):
    batch = random_batch(model)._replace(discounts=torch.full((16, 1), 0.5))
    online, target = (net.members(batch.next_observations) for net in (model.q_net, model.q_net_target))
    expected = batch.rewards + (1 - batch.dones) * 0.5 * ebql(online, target)
    torch.testing.assert_close(model.targets(batch), expected.detach())
    assert EBQL("MlpPolicy", "CartPole-v1", **SMALL, n_steps=3).learn(60).num_timesteps >= 60


def test_actions_are_greedy_on_the_members_mean(model):
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    values = model.q_values(observations)
    assert values.shape == (50, 3, 2)
    actions, _ = model.predict(observations, deterministic=True)
    assert actions.tolist() == values.mean(1).argmax(-1).tolist()
    assert not np.array_equal(actions, values[:, 0].argmax(-1))
    torch.testing.assert_close(
        model.q_net(torch.from_numpy(observations)).detach(), torch.from_numpy(values.mean(1))
    )


def test_save_and_load_and_go_on(model, tmp_path):
    model.learn(60).save(tmp_path / "model.zip")
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    loaded = EBQL.load(tmp_path / "model.zip", env=make_vec_env("CartPole-v1"), device="cpu")
    assert (loaded.ensemble_size, loaded.policy_kwargs) == (3, {"net_arch": [8, 8]})
    assert np.array_equal(loaded.q_values(observations), model.q_values(observations))
    for name, tensor in loaded.policy.optimizer.state_dict()["state"][0].items():
        torch.testing.assert_close(tensor, model.policy.optimizer.state_dict()["state"][0][name])
    assert loaded.learn(20, reset_num_timesteps=False).num_timesteps >= 80
    model.policy.save(tmp_path / "policy.pt")
    policy = type(model.policy).load(tmp_path / "policy.pt", device="cpu")
    assert np.array_equal(policy.predict(observations)[0], model.policy.predict(observations)[0])


def test_callbacks_vector_environments_and_tools(tmp_path):
    check_env(gymnasium.make("CartPole-v1").unwrapped, warn=False)
    model = EBQL("MlpPolicy", make_vec_env("CartPole-v1", 2), **SMALL)
    evaluation = EvalCallback(
        make_vec_env("CartPole-v1"), eval_freq=50, n_eval_episodes=2, log_path=str(tmp_path), verbose=0
    )
    bias = BiasCallback(gymnasium.make("CartPole-v1"), eval_freq=50, n_eval_episodes=2)
    saving = CheckpointCallback(50, str(tmp_path))
    model.learn(100, callback=[evaluation, bias, saving])
    assert np.load(tmp_path / "evaluations.npz")["results"].shape == (1, 2)
    assert (tmp_path / "rl_model_100_steps.zip").exists()
    assert bias.last_bias.spread > 0  # it has members
    score, _ = evaluate_policy(model, make_vec_env("CartPole-v1"), n_eval_episodes=2, warn=False)
    assert score > 5
    assert measure_bias(model, "CartPole-v1", episodes=2).states > 0


class Pictures(gymnasium.Env):
    """Observations of a given space, drawn at random."""

    action_space = Discrete(3)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, bool(self.np_random.random() < 0.1), False, {}


@pytest.mark.parametrize(
    ("policy", "space"),
    [
        ("CnnPolicy", Box(0, 255, (36, 36, 1), np.uint8)),
        ("MultiInputPolicy", Dict({"a": Box(-1, 1, (2,)), "b": Discrete(3)})),
    ],
)
def test_other_policies(policy, space):
    options = {**SMALL, "policy_kwargs": {}, "learning_starts": 4, "batch_size": 4}
    model = EBQL(policy, Pictures(space), **options).learn(12)
    # Members share the features: the extractor's weights exist once in the online network.
    n_extractors = {name.split(".")[0] for name, _ in model.q_net.named_parameters()}
    assert n_extractors <= {"features_extractor", "networks"}
    assert len(model.q_net.networks) == 3


def test_bad_arguments_are_told():
    with pytest.raises(InputError, match="ensemble_size must be at least 2, not 1"):
        EBQL("MlpPolicy", "CartPole-v1", ensemble_size=1)
    with pytest.raises(InputTypeError, match="DQNPolicy has no members: derive your policy from ebql.sb3"):
        EBQL(MlpPolicy, "CartPole-v1")


def test_it_learns_cartpole():
    model = EBQL(
        "MlpPolicy",
        make_vec_env("CartPole-v1", 4, seed=0),
        ensemble_size=3,
        learning_rate=2.3e-3,
        learning_starts=400,
        batch_size=64,
        gradient_steps=8,
        target_update_interval=100,
        exploration_fraction=0.2,
        exploration_final_eps=0.04,
        buffer_size=10_000,
        gamma=0.98,
        seed=0,
        device="cpu",
    )
    environment = make_vec_env("CartPole-v1", 5, seed=7)
    before, _ = evaluate_policy(model, environment, n_eval_episodes=10)
    model.learn(2_000)
    after, _ = evaluate_policy(model, environment, n_eval_episodes=10)
    assert before < 50
    assert after > 100
