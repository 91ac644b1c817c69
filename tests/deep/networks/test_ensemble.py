import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.observations import ObservationSpec
from ebql.errors import InputError

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


def test_the_patch_product_is_a_convolution():
    net = network(MINATAR, "minatar", (8,))
    layer = net.torso[0].convolution
    images = observations(MINATAR, 3).float()
    kernel = layer.weight[0].view(3, 3, 4, 16).permute(3, 2, 0, 1)
    slow = torch.conv2d(images.permute(0, 3, 1, 2), kernel, layer.bias.flatten()).relu()
    torch.testing.assert_close(net.torso[0](images)[0], slow.permute(0, 2, 3, 1).flatten(1))


def test_patches_that_do_not_overlap_make_the_same_convolutions():
    net = network(ATARI, "small", (8,))
    pixels = observations(ATARI, 3).float()
    slow = pixels
    for layer, (n_in, filters) in zip(net.torso[0].layers, ((4, 32), (32, 64)), strict=True):
        kernel = layer.weight[0].view(5, 5, n_in, filters).permute(3, 2, 0, 1)
        slow = torch.conv2d(slow, kernel, layer.bias.flatten(), stride=5).relu()
    fast = net.torso[0](pixels.permute(0, 2, 3, 1))[0]
    assert fast.shape == (3, 3 * 3 * 64)
    torch.testing.assert_close(fast, slow.permute(0, 2, 3, 1).flatten(1))


def test_members_start_different():
    values = network(VECTOR, "mlp", (8, 8))(observations(VECTOR))
    assert len(values[0].unique(dim=0)) == 3


def test_channels_first_and_last_are_the_same_image():
    last, first = ObservationSpec((10, 10, 4), "bool"), ObservationSpec((4, 10, 10), "bool")
    images = observations(last)
    assert first.image_shape == last.image_shape == (10, 10, 4)
    assert torch.equal(first.encode(images.permute(0, 3, 1, 2)), last.encode(images))


def test_discrete_observations_are_one_hot_and_bytes_are_scaled():
    spec = ObservationSpec.of(Discrete(3, start=1))
    assert spec.encode(torch.tensor([1, 3])).tolist() == [[1, 0, 0], [0, 0, 1]]
    pixels = ObservationSpec.of(Box(0, 255, (2,), np.uint8))
    assert pixels.encode(torch.tensor([[0, 255]], dtype=torch.uint8)).tolist() == [[0.0, 1.0]]


def test_a_convolution_over_vectors_is_refused():
    with pytest.raises(InputError, match="needs images"):
        network(VECTOR, "minatar", (8,))


@pytest.mark.parametrize("share_torso", [True, False])
def test_nature_is_three_convolutions_and_features_with_channels_last(share_torso):
    encoder = network(ATARI, "nature", (8,), n_members=2, share_torso=share_torso).torso[0]
    images = torch.rand(3, 84, 84, 4, generator=torch.Generator().manual_seed(1))
    features = encoder(images)
    for k in range(len(features)):
        slow = images.permute(0, 3, 1, 2).contiguous()
        for weight, bias, (_, _, stride) in zip(encoder.weights, encoder.biases, encoder.LAYERS, strict=True):
            own = (each.chunk(len(features))[k] for each in (weight, bias))
            slow = torch.conv2d(slow, *own, stride=stride).relu()
        torch.testing.assert_close(features[k], slow.permute(0, 2, 3, 1).flatten(1))
