import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from ebql.deep.networks.encoders import encode, make_encoder
from ebql.deep.networks.observations import ObservationSpec
from ebql.errors import InputError

VECTOR = ObservationSpec((2, 3), "float32")
MINATAR = ObservationSpec((10, 10, 4), "bool")
ATARI = ObservationSpec((84, 84, 4), "uint8")
CASES = [(VECTOR, "mlp"), (MINATAR, "minatar"), (ATARI, "nature"), (ATARI, "small")]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def encoder_of(spec, torso, n_torsos=1):
    return make_encoder(torso, spec, n_torsos, generator())


def images(spec, rows=3):
    return torch.rand(rows, *spec.shape, generator=generator(1))


def features_of(encoder, inputs, blocks=1):
    return encoder(encoder.unfold(inputs), blocks=blocks)


def test_channels_first_and_last_are_the_same_image():
    last, first = ObservationSpec((10, 10, 4), "bool"), ObservationSpec((4, 10, 10), "bool")
    images = torch.rand(2, 10, 10, 4, generator=torch.Generator().manual_seed(0)) < 0.5
    assert first.image_shape == last.image_shape == (10, 10, 4)
    assert torch.equal(encode(first, images.permute(0, 3, 1, 2)), encode(last, images))


def test_discrete_observations_are_one_hot_and_bytes_are_scaled():
    spec = ObservationSpec.of(Discrete(3, start=1))
    assert encode(spec, torch.tensor([1, 3])).tolist() == [[1, 0, 0], [0, 0, 1]]
    pixels = ObservationSpec.of(Box(0, 255, (2,), np.uint8))
    assert encode(pixels, torch.tensor([[0, 255]], dtype=torch.uint8)).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(("spec", "torso"), CASES)
def test_a_block_of_rows_has_the_features_of_its_own_encoder(spec, torso):
    encoder, inputs = encoder_of(spec, torso, n_torsos=2), images(spec, rows=6)
    features = features_of(encoder, inputs, blocks=2)
    assert features.shape == (2, 3, encoder.n_features)
    for k in range(2):
        rows = inputs[3 * k : 3 * k + 3]
        every = features_of(encoder, rows)  # of both encoders; a shared one has just one
        torch.testing.assert_close(features[k], every[min(k, len(every) - 1)])


def test_vectors_are_flattened():
    assert np.array_equal(
        features_of(encoder_of(VECTOR, "mlp"), images(VECTOR))[0], images(VECTOR).flatten(1)
    )


@pytest.mark.parametrize("n_torsos", [1, 2])
def test_minatars_product_over_patches_is_a_convolution(n_torsos):
    encoder, inputs = encoder_of(MINATAR, "minatar", n_torsos), images(MINATAR)
    features = features_of(encoder, inputs)
    for k in range(n_torsos):
        kernel = encoder.convolution.weight[k].view(3, 3, 4, 16).permute(3, 2, 0, 1)
        bias = encoder.convolution.bias[k].flatten()
        slow = torch.conv2d(inputs.permute(0, 3, 1, 2), kernel, bias).relu()
        torch.testing.assert_close(features[k], slow.permute(0, 2, 3, 1).flatten(1))


def test_smalls_products_over_patches_are_convolutions():
    encoder, inputs = encoder_of(ATARI, "small"), images(ATARI)
    slow = inputs.permute(0, 3, 1, 2)
    for layer, (n_in, filters) in zip(encoder.layers, ((4, 32), (32, 64)), strict=True):
        kernel = layer.weight[0].view(5, 5, n_in, filters).permute(3, 2, 0, 1)
        slow = torch.conv2d(slow, kernel, layer.bias.flatten(), stride=5).relu()
    fast = features_of(encoder, inputs)[0]
    assert fast.shape == (3, 3 * 3 * 64)
    torch.testing.assert_close(fast, slow.permute(0, 2, 3, 1).flatten(1))


@pytest.mark.parametrize("n_torsos", [1, 2])
def test_nature_is_three_convolutions_whose_features_have_channels_last(n_torsos):
    encoder, inputs = encoder_of(ATARI, "nature", n_torsos), images(ATARI)
    features = features_of(encoder, inputs)
    assert features.shape == (n_torsos, 3, 7 * 7 * 64)
    for k in range(n_torsos):
        slow = inputs.permute(0, 3, 1, 2).contiguous()
        for weight, bias, stride in zip(encoder.weights, encoder.biases, (4, 2, 1), strict=True):
            own = (each.chunk(n_torsos)[k] for each in (weight, bias))
            slow = torch.conv2d(slow, *own, stride=stride).relu()
        torch.testing.assert_close(features[k], slow.permute(0, 2, 3, 1).flatten(1))


@pytest.mark.parametrize("torso", ["minatar", "small", "nature"])
def test_a_convolution_over_vectors_is_refused(torso):
    with pytest.raises(InputError, match=r"needs images, but .* have shape \(2, 3\)"):
        encoder_of(VECTOR, torso)
