import math

import numpy as np
import pytest
import torch

from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.observations import ObservationSpec

VECTOR = ObservationSpec((4,), "float32")
MINATAR = ObservationSpec((10, 10, 4), "bool")
ATARI = ObservationSpec((4, 84, 84), "uint8")
CASES = [
    (VECTOR, "mlp", (64, 32)),
    (MINATAR, "minatar", (128,)),
    (ATARI, "nature", (32,)),
    (ATARI, "small", (32,)),
]


def network(spec, torso, hidden, n_members=3, own_layers=1, share_torso=True):
    generator = torch.Generator().manual_seed(0)
    return QNetwork(
        spec,
        n_actions=5,
        n_members=n_members,
        torso=torso,
        hidden=hidden,
        own_layers=own_layers,
        share_torso=share_torso,
        generator=generator,
    )


def observations(spec, rows=2):
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.integers(0, 2, (rows, *spec.shape)).astype(spec.dtype))


@pytest.mark.parametrize(("spec", "torso", "hidden"), CASES)
@pytest.mark.parametrize("share_torso", [True, False])
@pytest.mark.parametrize("own_layers", [0, 1, 2])
def test_values_are_batch_members_actions(spec, torso, hidden, share_torso, own_layers):
    net = network(spec, torso, hidden, share_torso=share_torso, own_layers=own_layers)
    assert net(observations(spec)).shape == (2, 3, 5)


@pytest.mark.parametrize(("spec", "torso", "hidden"), CASES)
@pytest.mark.parametrize("share_torso", [True, False])
def test_a_member_depends_on_its_own_parameters_only(spec, torso, hidden, share_torso):
    net = network(spec, torso, hidden, share_torso=share_torso)
    inputs = observations(spec)
    before = net(inputs)
    owned = net.parameters() if not share_torso else net.heads.parameters()
    with torch.no_grad():
        for parameter in owned:
            parameter.chunk(3)[1].add_(0.1)
    changed = (net(inputs) != before).flatten(2).any(-1).any(0)
    assert changed.tolist() == [False, True, False]


@pytest.mark.parametrize(("spec", "torso", "hidden"), CASES)
def test_unshared_members_equal_single_networks_with_their_parameters(spec, torso, hidden):
    ensemble, single = (network(spec, torso, hidden, n, share_torso=False) for n in (3, 1))
    inputs = observations(spec)
    with torch.no_grad():
        for k in range(3):
            for own, stacked in zip(single.parameters(), ensemble.parameters(), strict=True):
                own.copy_(stacked.chunk(3)[k])
            torch.testing.assert_close(single(inputs)[:, 0], ensemble(inputs)[:, k])


@pytest.mark.parametrize(("spec", "torso", "hidden"), CASES)
@pytest.mark.parametrize("share_torso", [True, False])
@pytest.mark.parametrize("own_layers", [0, 1, 2])
def test_a_member_alone_and_own_rows_give_the_values_of_all_members(
    spec, torso, hidden, share_torso, own_layers
):
    net = network(spec, torso, hidden, share_torso=share_torso, own_layers=own_layers)
    inputs = observations(spec, rows=6)
    values = net(inputs)
    own = net(inputs, own_rows=True)
    assert own.shape == (6, 1, 5)
    for k in range(3):
        torch.testing.assert_close(net.member(k)(inputs), values[:, k : k + 1])
        block = slice(2 * k, 2 * k + 2)
        torch.testing.assert_close(own[block], values[block, k : k + 1])


@pytest.mark.parametrize("share_torso", [True, False])
def test_a_member_alone_lives_in_the_memory_of_all(share_torso):
    net = network(MINATAR, "minatar", (8,), share_torso=share_torso)
    inputs, member = observations(MINATAR), net.member(1)
    before = net(inputs)
    with torch.no_grad():
        for parameter in member.heads.parameters():
            parameter.add_(0.1)
    changed = (net(inputs) != before).flatten(2).any(-1).any(0)
    assert changed.tolist() == [False, True, False]
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    assert not member(inputs).any()


def test_members_start_different():
    values = network(VECTOR, "mlp", (8, 8))(observations(VECTOR))
    assert len(values[0].unique(dim=0)) == 3


@pytest.mark.parametrize("share_torso", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
def test_implicit_quantiles_are_a_function_of_their_fractions(share_torso, dueling):
    """Equation 4 of Dabney et al. (2018b), one row, member and fraction at a time."""
    network = QNetwork(
        ObservationSpec((3,), "float32"),
        2,
        3,
        torso="mlp",
        hidden=(6, 5),
        own_layers=1,
        share_torso=share_torso,
        generator=torch.Generator().manual_seed(0),
        dueling=dueling,
        fractions=4,
    )
    observations, fractions = torch.randn(6, 3), torch.rand(6, 7)
    with torch.no_grad():
        outputs = network.outputs(observations, fractions=fractions)
        assert outputs.shape == (6, 3, 2, 7)
        own = network.outputs(observations, own_rows=True, fractions=fractions)
        encoder, dense, embedding = network.torso
        for row in range(6):
            torch.testing.assert_close(own[row, 0], outputs[row, row // 2])
            features = dense(encoder(observations[row : row + 1]))
            for place in range(7):
                cosines = torch.cos(math.pi * torch.arange(64) * fractions[row, place])
                layer = embedding.dense.layers[0]
                weights = torch.relu(cosines @ layer.weight + layer.bias[:, 0])  # (torsos, features)
                by_member = network.heads(features * weights[:, None])
                torch.testing.assert_close(outputs[row, :, :, place], by_member[:, 0])
        for k in range(3):
            one = network.member(k).outputs(observations, fractions=fractions)
            torch.testing.assert_close(one[:, 0], outputs[:, k])
        midpoints = torch.tensor([[1, 3, 5, 7]]) / 8
        usual = network.outputs(observations, fractions=midpoints.expand(6, -1))
        torch.testing.assert_close(network(observations), usual)


@pytest.mark.parametrize("fractions", [None, 4])
@pytest.mark.parametrize("share_torso", [True, False])
def test_a_member_alone_has_the_noise_that_it_has_among_all(share_torso, fractions):
    chance = torch.Generator().manual_seed(0)
    network = QNetwork(
        ObservationSpec((3,), "float32"),
        2,
        3,
        torso="mlp",
        hidden=(6, 5),
        own_layers=1,
        share_torso=share_torso,
        generator=chance,
        noise_scale=0.5,
        fractions=fractions,
    )
    alone = [network.member(k) for k in range(3)]
    network.resample(chance)  # after the members were taken out, as the learner does
    observations = torch.randn(6, 3, generator=chance)
    with torch.no_grad():
        together = network(observations)
        for k in range(3):
            torch.testing.assert_close(alone[k](observations)[:, 0], together[:, k])
