"""Updates whose products are in bfloat16. PyTorch emulates it where the processor has none."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from ebql.deep import building
from ebql.deep.agent import DQN, EBQL
from ebql.deep.config.agents import CONFIGS, EBQLConfig, RainbowEBQLConfig
from ebql.deep.fast import dense
from ebql.deep.networks.observations import ObservationSpec
from ebql.errors import InputError

from .test_learner import batch, tensors
from .test_learner_parts import learner, masks_of

IMAGES = ObservationSpec((40, 40, 2), "uint8")
BINARY = ObservationSpec((10, 10, 4), "bool")


@pytest.fixture(autouse=True)
def _fast_enough(monkeypatch):
    """Keep this machine's speed out of the tests; one of them is about it."""
    monkeypatch.setattr(building, "gains_by_bfloat16", lambda _device: True)


def gradients(one, rows):
    """Return the gradient of each parameter; a learner must not have computed any before."""
    plan = one._plans[0]
    computed = one._compute(plan, tensors(rows), one._samples(plan, len(rows.actions)))
    assert computed.loss.dtype == computed.errors.dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")
    return [gradient.clone() for gradient in computed.gradients]


def in_both(config, make=learner):
    return [make(config.override(precision=precision)) for precision in ("float32", "bfloat16")]


def assert_close_but_rounded(full, low):
    """Each parameter's gradient is that of float32 up to rounding, which every hidden layer shows."""
    for i, (wanted, rounded) in enumerate(zip(full, low, strict=True)):
        assert rounded.dtype == torch.float32
        assert (rounded - wanted).norm() <= 0.15 * wanted.norm(), i
        assert not torch.equal(rounded, wanted) or not wanted.any(), i


@pytest.mark.parametrize("name", CONFIGS)
def test_gradients_are_those_of_float32_but_for_rounding(name):
    config = CONFIGS[name]().override(v_min=-4.0, v_max=4.0)
    both = in_both(config)
    rows = batch(both[0].rows, n_masks=masks_of(config))
    assert_close_but_rounded(*(gradients(one, rows) for one in both))


@pytest.mark.parametrize("name", CONFIGS)
def test_converted_weights_that_passes_share_lose_no_gradient(name):
    config = CONFIGS[name]().override(v_min=-4.0, v_max=4.0, precision="bfloat16")
    shared, converted_anew = learner(config), learner(config)
    converted_anew._precision = torch.autocast("cpu", torch.bfloat16, cache_enabled=False)
    rows = batch(shared.rows, n_masks=masks_of(config))
    for a, b in zip(gradients(shared, rows), gradients(converted_anew, rows), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    "options",
    [
        {"share_torso": False},
        {"data": "independent"},
        {"members": "cycle"},
        {"layer_norm": True},
        {"activation": "gelu"},
        {"prior_scale": 1.0},
        {"own_layers": 0},
        {"log_diversity": True},
    ],
    ids=str,
)
def test_so_they_are_with_every_option_of_the_network(options):
    both = in_both(EBQLConfig(ensemble_size=3).override(**options))
    assert_close_but_rounded(*(gradients(one, batch(one.rows)) for one in both))


@pytest.mark.parametrize(
    ("torso", "spec"), [("nature", IMAGES), ("small", IMAGES), ("minatar", IMAGES), ("minatar", BINARY)]
)
@pytest.mark.parametrize("share_torso", [True, False])
def test_so_they_are_behind_convolutions(torso, spec, share_torso):
    config = EBQLConfig(ensemble_size=2, torso=torso, share_torso=share_torso, batch_size=8)
    both = in_both(config, lambda own: building.build_learner(own, spec, n_actions=2))
    images, others = np.random.default_rng(0).integers(0, 2, (2, 8, *spec.shape)).astype(spec.dtype)
    rows = batch(8)._replace(observations=images, next_observations=others)
    assert_close_but_rounded(*(gradients(one, rows) for one in both))


@pytest.mark.parametrize("config", [EBQLConfig(ensemble_size=3), RainbowEBQLConfig(ensemble_size=3)])
def test_so_they_are_in_layers_that_have_a_fast_product_in_float32(config, monkeypatch):
    monkeypatch.setattr(dense, "LARGE", 1)
    monkeypatch.setattr(dense, "WIDE", 1)
    assert_close_but_rounded(*(gradients(one, batch()) for one in in_both(config)))


def test_outputs_are_not_rounded_to_bfloat16():
    one = learner(EBQLConfig(ensemble_size=3, precision="bfloat16"))
    outputs, after = one._outputs_and_next(one._plans[0], tensors(batch()))
    for values in (outputs, after.online, after.target):
        assert values.dtype == torch.float32
        assert not torch.equal(values, values.bfloat16().float())


def test_what_is_kept_is_float32_and_a_batch_is_learnt_by_heart():
    one = learner(EBQLConfig(ensemble_size=3, precision="bfloat16", learning_rate=5e-3))
    losses = [one.update(batch()).loss for _ in range(300)]
    assert losses[-1] < 0.05 * losses[0]
    numbers = {str(array.dtype) for name, array in one.state().items() if "steps" not in name}
    assert numbers <= {"float32"}


def test_values_and_actions_do_not_depend_on_the_precision():
    full, low = in_both(EBQLConfig(ensemble_size=3))
    assert torch.equal(full.values(batch().observations), low.values(batch().observations))


def test_convolutions_are_computed_in_it(monkeypatch):
    found, convolve = [], torch.conv2d

    def recorded(*arguments, **options):
        found.append(convolve(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(torch, "conv2d", recorded)
    config = EBQLConfig(ensemble_size=2, torso="nature", batch_size=8, precision="bfloat16")
    one = building.build_learner(config, IMAGES, n_actions=2)
    images = np.zeros((8, *IMAGES.shape), np.uint8)
    one.update(batch(8)._replace(observations=images, next_observations=images))
    assert {outputs.dtype for outputs in found} == {torch.bfloat16}
    found.clear()
    one.values(images)
    assert {outputs.dtype for outputs in found} == {torch.float32}


class _Encoder(nn.Module):
    """Calls its layer without gradients first, after which autocast's cache has none for it."""

    def __init__(self, space):
        super().__init__()
        self.layer, self.found = nn.Linear(space.shape[0], 8), set()

    def forward(self, observations):
        with torch.no_grad():
            mean = self.layer(observations).mean(0)
        outputs = self.layer(observations)
        self.found.add(outputs.dtype)
        return torch.relu(outputs - mean)


class _Float32Encoder(nn.Module):
    """Writes a layer's output into an array of float32, which bfloat16 does not fit."""

    def __init__(self, space):
        super().__init__()
        self.layer = nn.Linear(space.shape[0], 1)

    def forward(self, observations):
        features = torch.zeros(len(observations), 2)
        features[:, torch.tensor([0])] = self.layer(observations)
        return features


def _network(space, n_actions, n_members):
    return nn.Sequential(
        nn.Linear(space.shape[0], n_members * n_actions), nn.Unflatten(1, (n_members, n_actions))
    )


@pytest.mark.parametrize("own", [{"encoder": _Encoder}, {"network": _network}], ids=["encoder", "network"])
def test_networks_of_the_users_own_are_computed_in_it_too(own, small):
    agents = [
        EBQL("CartPole-v1", ensemble_size=2, precision=precision, **own, **small)
        for precision in ("float32", "bfloat16")
    ]
    now, after = np.random.default_rng(0).normal(size=(2, 32, 4)).astype(np.float32)
    rows = batch()._replace(observations=now, next_observations=after)
    assert_close_but_rounded(*(gradients(agent._learner, rows) for agent in agents))
    for agent, dtype in zip(agents, (torch.float32, torch.bfloat16), strict=True):
        for module in agent._learner.online.own.own:
            assert dtype in getattr(module, "found", {dtype})


def test_a_module_that_cannot_compute_in_it_is_refused_before_the_first_step(small):
    EBQL("CartPole-v1", encoder=_Float32Encoder, **small)
    with pytest.raises(InputError, match="The encoder _Float32Encoder fails on observations"):
        EBQL("CartPole-v1", encoder=_Float32Encoder, precision="bfloat16", **small)


def test_a_run_resumes_to_the_same_bits(small, tmp_path):
    options = {**small, "precision": "bfloat16", "seed": 3}
    whole = EBQL("CartPole-v1", **options).learn(400)
    EBQL("CartPole-v1", **options).learn(200, out=tmp_path / "run")
    resumed = EBQL.resume(tmp_path / "run", steps=400)
    assert resumed.config.precision == "bfloat16"
    for name, array in whole._learner.state().items():
        assert (array == resumed._learner.state()[name]).all(), name


@pytest.mark.parametrize("gains", [True, False])
def test_a_machine_that_is_slower_with_it_is_warned_of(gains, small, monkeypatch):
    monkeypatch.setattr(building, "gains_by_bfloat16", lambda _device: gains)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DQN("CartPole-v1", **small).learn(10)
        assert not caught
        DQN("CartPole-v1", precision="bfloat16", **small).learn(10)
    told = [str(warning.message) for warning in caught]
    assert len(told) == (0 if gains else 1)
    assert all("leave out --precision bfloat16" in line for line in told)
