"""Agents with an encoder or a whole network of the user's own."""

from functools import partial

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch import nn

from ebql.deep.agent import DQN, EBQL, Agent
from ebql.deep.agents import AveragedDQN, BootstrappedDQN, Rainbow
from ebql.deep.config.agents import DQNConfig
from ebql.deep.networks.encoders import to_floats
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.own import OwnModules
from ebql.environments.exact.probes import exact_q
from ebql.errors import InputError, InputTypeError


class Wide(nn.Module):
    """Features (rows, 12) of flat observations."""

    def __init__(self, space, n_features=12):
        super().__init__()
        n_inputs = space.n if isinstance(space, Discrete) else int(np.prod(space.shape))
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, n_features), nn.Tanh())

    def forward(self, observations):
        return self.layers(observations)


class Moody(Wide):
    """An encoder that draws random numbers, keeps running statistics, and has parts that do not learn."""

    def __init__(self, space):
        super().__init__(space)
        self.extra = nn.Sequential(nn.BatchNorm1d(12), nn.Dropout(0.3))
        self.fixed = nn.Parameter(torch.full((1,), 2.0), requires_grad=False)
        self.unused = nn.Linear(3, 3)

    def forward(self, observations):
        return self.extra(self.layers(observations)) * self.fixed


class Whole(nn.Module):
    """Outputs (rows, K, A), or (rows, K, A, Z) with atoms."""

    def __init__(self, space, n_actions, n_members, atoms=None):
        super().__init__()
        self.shape = (n_members, n_actions) if atoms is None else (n_members, n_actions, atoms)
        n_inputs = int(np.prod(space.shape))
        self.layers = nn.Sequential(
            nn.Linear(n_inputs, 16), nn.ReLU(), nn.Linear(16, int(np.prod(self.shape)))
        )

    def forward(self, observations):
        return self.layers(observations).reshape(-1, *self.shape)


def tensors(agent):
    return {name: tensor.copy() for name, tensor in agent._learner.state().items()}


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        np.testing.assert_array_equal(tensor, second[name], err_msg=name)


PARTS = [
    (DQN, {}, {"encoder": Wide}),
    (EBQL, {"share_torso": False}, {"encoder": Wide}),
    (EBQL, {"members": "cycle"}, {"encoder": Wide}),
    (EBQL, {"members": "cycle", "share_torso": False}, {"encoder": Wide}),
    (EBQL, {"data": "independent", "share_torso": False}, {"encoder": Moody}),
    (EBQL, {"dueling": True, "noisy": True, "atoms": 11, "members": "cycle"}, {"encoder": Moody}),
    (EBQL, {"layer_norm": True, "activation": "silu", "own_layers": 0}, {"encoder": Moody}),
    (Rainbow, {"ensemble_size": 1}, {"encoder": Wide}),
    (AveragedDQN, {"snapshots": 3, "dueling": True}, {"encoder": Moody}),
    (BootstrappedDQN, {"prior_scale": 3.0}, {"encoder": Wide}),
    (DQN, {"prioritized": True}, {"network": Whole}),
    (EBQL, {"split": 2}, {"network": Whole}),
    (EBQL, {"data": "independent"}, {"network": Whole}),
    (EBQL, {"atoms": 11}, {"network": partial(Whole, atoms=11)}),
    (EBQL, {"prior_scale": 1.0, "data": "masked"}, {"network": Whole}),
    (AveragedDQN, {"snapshots": 3}, {"network": Whole}),
]


@pytest.mark.parametrize(("kind", "options", "own"), PARTS)
def test_they_learn_save_load_and_resume_to_the_same_bits(kind, options, own, small, tmp_path):
    if kind in (EBQL, BootstrappedDQN):
        options = {"ensemble_size": 3, **options}
    options = {**small, **options}
    whole = kind("CartPole-v1", **options, **own).learn(160, out=tmp_path / "whole")
    before = tensors(kind("CartPole-v1", **options, **own))
    learnt = {name for name, tensor in tensors(whole).items() if not np.array_equal(tensor, before[name])}
    assert any(name.startswith("online.torso.0.own.") for name in learnt)
    assert not any("fixed" in name for name in learnt)

    def stop(record):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        kind("CartPole-v1", **{**options, "log_period": 130}, **own).learn(
            160, out=tmp_path / "cut", callback=stop
        )
    resumed = kind.resume(tmp_path / "cut", **own)
    assert_equal(tensors(resumed), tensors(whole))

    loaded = Agent.load(whole.save(tmp_path / "agent"), **own)
    assert_equal(tensors(loaded), tensors(whole))
    observations = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_array_equal(loaded.q_values(observations), whole.q_values(observations))
    assert loaded.q_values(observations).shape == (5, whole.ensemble_size, 2)


def test_the_global_generator_is_left_alone_and_the_seed_decides(small):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    agent = DQN("CartPole-v1", encoder=Moody, **small).learn(100)
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(99)
    assert_equal(tensors(DQN("CartPole-v1", encoder=Moody, **small).learn(100)), tensors(agent))
    other = DQN("CartPole-v1", encoder=Moody, seed=1, **small).learn(100)
    assert not np.array_equal(
        tensors(other)["online.torso.0.own.0.layers.1.weight"],
        tensors(agent)["online.torso.0.own.0.layers.1.weight"],
    )


def test_each_member_has_an_encoder_of_its_own_unless_they_share_one(small):
    for share, n_encoders in ((True, 1), (False, 3)):
        agent = EBQL("CartPole-v1", encoder=Wide, ensemble_size=3, share_torso=share, **small)
        encoders = agent._learner.online.own.own
        assert len(encoders) == n_encoders
        weights = [encoder.layers[1].weight for encoder in encoders]
        assert len({float(weight.detach().sum()) for weight in weights}) == n_encoders


def test_in_a_cycle_only_the_learning_member_and_what_all_share_move(small):
    small = {**small, "update_period": 1, "learning_starts": 50}
    for share in (True, False):
        agent = EBQL(
            "CartPole-v1", encoder=Wide, ensemble_size=3, members="cycle", share_torso=share, **small
        )
        agent.learn(49)
        before = tensors(agent)
        agent.learn(1)  # one update, of member 0
        after = tensors(agent)
        moved = {name for name in before if not np.array_equal(before[name], after[name])}
        moved = {name.split(".")[4] for name in moved if name.startswith("online.torso.0.own.")}
        assert moved == {"0"}
        agent.learn(1)
        latest = tensors(agent)
        moved = {name for name in after if not np.array_equal(after[name], latest[name])}
        moved = {name.split(".")[4] for name in moved if name.startswith("online.torso.0.own.")}
        assert moved == ({"0"} if share else {"1"})


def test_targets_get_running_statistics_with_the_weights(small):
    agent = DQN("CartPole-v1", encoder=Moody, **{**small, "target_period": 60}).learn(60)
    state = tensors(agent)
    mean = "torso.0.own.0.extra.0.running_mean"
    assert np.abs(state[f"online.{mean}"]).max() > 0
    np.testing.assert_array_equal(state[f"target.{mean}"], state[f"online.{mean}"])


def test_dropout_and_batch_statistics_are_for_learning_alone(small):
    agent = DQN("CartPole-v1", encoder=Moody, **small).learn(100)
    row = np.ones((1, 4))
    first = agent.q_values(row)
    np.testing.assert_array_equal(agent.q_values(row), first)
    np.testing.assert_allclose(agent.q_values(np.repeat(row, 3, 0))[2], first[0], rtol=1e-5)


def test_modules_and_rules_do_not_draw_the_same_numbers(small):
    learner = DQN("CartPole-v1", encoder=Moody, implicit_quantiles=4, **small)._learner
    modules = torch.Generator()
    modules.set_state(learner._module_rng)
    assert not torch.isin(
        torch.rand(100, generator=modules), torch.rand(100, generator=learner._generator)
    ).any()


@pytest.mark.parametrize("own", [{"encoder": Wide}, {"network": Whole}])
@pytest.mark.parametrize("share_torso", [True, False])
def test_independent_rows_are_those_of_each_member_alone(own, share_torso, small):
    if "network" in own and not share_torso:
        return
    agent = EBQL("CartPole-v1", ensemble_size=3, share_torso=share_torso, **own, **small)
    network = agent._learner.online
    rows = torch.randn(6, 4)
    everything = network(rows)
    blocks = network(rows, own_rows=True)
    expected = torch.stack([everything[row, row // 2] for row in range(6)])
    torch.testing.assert_close(blocks[:, 0], expected)


def test_an_own_agent_finds_exact_values():
    agent = EBQL(
        "ebql/ProbeDiscount-v0",
        encoder=Wide,
        ensemble_size=3,
        hidden=(32,),
        discount=0.5,
        learning_rate=5e-3,
        update_period=1,
        target_period=20,
        learning_starts=50,
        epsilon_end=1.0,
        evaluation_period=0,
    ).learn(350)
    observations, exact = exact_q("Discount", discount=0.5)
    np.testing.assert_allclose(agent.q_values(observations).mean(1), exact, atol=0.05)


def test_modules_see_floats_in_the_shape_of_the_environment():
    seen = {}

    class Watching(nn.Module):
        def __init__(self, space):
            super().__init__()
            seen["space"] = space
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, observations):
            seen["observations"] = observations
            return observations.flatten(1) * self.scale

    def shown(spec, stored):
        own = OwnModules(encoder=Watching).made(DQNConfig(), spec, 2, torch.Generator())
        own(to_floats(spec, torch.from_numpy(stored)))
        return seen["observations"], seen["space"]

    image = np.full((2, 3, 8, 8), 51, np.uint8)  # channels first
    floats, space = shown(ObservationSpec((3, 8, 8), "uint8"), image)
    assert space == Box(0, 255, (3, 8, 8), np.uint8)
    assert floats.shape == (2, 3, 8, 8)
    torch.testing.assert_close(floats, torch.full((2, 3, 8, 8), 0.2))
    floats, space = shown(ObservationSpec((), "int64", 3, 5), np.array([5, 7]))
    assert space == Discrete(3, start=5)
    assert floats.tolist() == [[1, 0, 0], [0, 0, 1]]
    _, space = shown(ObservationSpec((2,), "float32"), np.zeros((2, 2), np.float32))
    assert space == Box(-np.inf, np.inf, (2,), np.float32)


class Flat(Wide):
    def forward(self, observations):
        return self.layers(observations).sum()


class Deep(Wide):
    def forward(self, observations):
        return self.layers(observations).reshape(-1, 3, 4)


class Double(Wide):
    def forward(self, observations):
        return self.layers(observations).double()


class Fails(Wide):
    def forward(self, observations):
        return self.layers(observations[:, :2])


class Pair(Wide):
    def forward(self, observations):
        return self.layers(observations), None


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (
            {"encoder": Flat},
            r"The encoder Flat must return a row for each observation, but for 2 .* returned \(\)",
        ),
        (
            {"encoder": Deep},
            r"The encoder Deep must return features \(rows, n\), but .* returned \(2, 3, 4\)",
        ),
        ({"encoder": Double}, "The encoder Double must return a tensor of float32, not torch.float64"),
        ({"encoder": Pair}, "The encoder Pair must return a tensor of float32, not tuple"),
        ({"encoder": Fails}, r"The encoder Fails fails on observations of shape \(2, 4\): mat1 and mat2"),
        ({"encoder": 3}, "encoder must be a class or function that makes a torch.nn.Module, not 3"),
        ({"encoder": nn.Flatten()}, "makes a torch.nn.Module, not the module Flatten"),
        ({"encoder": lambda space: 7}, "The encoder <lambda> must make a torch.nn.Module, not 7"),
        (
            {"network": lambda space, a, k: Wide(space)},
            r"must return outputs \(rows, 3, 2\), but .* \(2, 12\)",
        ),
        ({"network": partial(Whole, atoms=5)}, r"network Whole must return outputs \(rows, 3, 2\)"),
        (
            {"network": Whole, "atoms": 5},
            r"must return outputs \(rows, 3, 2, 5\), but .* returned \(2, 3, 2\)",
        ),
        ({"network": Whole, "encoder": Wide}, "an encoder or a network, not both"),
        ({"network": Whole, "dueling": True}, "dueling does not work with a network of your own"),
        ({"network": Whole, "noisy": True}, "noisy does not work with a network of your own"),
        ({"network": Whole, "members": "cycle"}, "members cycle does not work with a network of your own"),
        ({"network": Whole, "share_torso": False}, "share-torso off does not work with a network"),
        ({"network": Whole, "torso_gradient": "mean"}, "torso-gradient mean does not work with a network"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(own, told, small, tmp_path):
    with pytest.raises((InputError, InputTypeError), match=told) as refused:
        EBQL("CartPole-v1", ensemble_size=3, **small, **own).learn(10, out=tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_file_says_which_class_it_needs_and_imports_none(small, tmp_path):
    agent = DQN("CartPole-v1", encoder=Wide, **small).learn(60, out=tmp_path / "run")
    path = agent.save(tmp_path / "agent")
    needed = "This agent has the encoder Wide, which is code and not in the file: "
    with pytest.raises(InputError) as refused:
        Agent.load(path)
    assert str(refused.value) == f"{needed}load(path, encoder=Wide)."
    with pytest.raises(InputError) as refused:
        DQN.resume(tmp_path / "run", steps=100)
    assert str(refused.value) == f"{needed}resume(folder, encoder=Wide)."
    with pytest.raises(InputError, match="has the encoder Wide"):
        Agent.load(path, network=Whole)
    with pytest.raises(InputError, match="The saved weights do not fit the options: online.torso"):
        Agent.load(path, encoder=partial(Wide, n_features=13))
    ours = DQN("CartPole-v1", **small).save(tmp_path / "ours")
    with pytest.raises(InputError, match="made without encoder: leave encoder out"):
        Agent.load(ours, encoder=Wide)
    assert DQN.resume(tmp_path / "run", steps=100, encoder=Wide).steps == 100


def test_lazy_layers_are_ready_before_anything_counts_them(small):
    agent = DQN(
        "CartPole-v1", encoder=lambda space: nn.Sequential(nn.Flatten(), nn.LazyLinear(7), nn.ReLU()), **small
    ).learn(60)
    assert agent._learner.online.own.n_features == 7


@pytest.mark.parametrize("options", [{"activation": "tanh"}, {"layer_norm": True}])
def test_small_networks_with_other_layers_act_as_pytorch_says(options, small):
    agent = EBQL("CartPole-v1", ensemble_size=3, epsilon_start=0.0, **{**small, **options})
    training = agent._prepare()
    assert training._numpy_values is None
    greedy = agent.q_values(training._observations).mean(1).argmax(-1)
    np.testing.assert_array_equal(training._greedy(), greedy)
