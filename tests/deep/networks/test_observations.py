import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from ebql.deep.networks.observations import ObservationSpec
from ebql.errors import InputError


def test_channels_first_and_last_are_the_same_image():
    last, first = ObservationSpec((10, 10, 4), "bool"), ObservationSpec((4, 10, 10), "bool")
    images = torch.rand(2, 10, 10, 4, generator=torch.Generator().manual_seed(0)) < 0.5
    assert first.image_shape == last.image_shape == (10, 10, 4)
    assert torch.equal(first.encode(images.permute(0, 3, 1, 2)), last.encode(images))


def test_discrete_observations_are_one_hot_and_bytes_are_scaled():
    spec = ObservationSpec.of(Discrete(3, start=1))
    assert spec.encode(torch.tensor([1, 3])).tolist() == [[1, 0, 0], [0, 0, 1]]
    pixels = ObservationSpec.of(Box(0, 255, (2,), np.uint8))
    assert pixels.encode(torch.tensor([[0, 255]], dtype=torch.uint8)).tolist() == [[0.0, 1.0]]


def test_one_observation_and_many_become_rows_of_the_specs_type():
    spec = ObservationSpec((2,), "float32")
    for given, rows, was_single in (([1, 2], [[1, 2]], True), ([[1, 2], [3, 4]], [[1, 2], [3, 4]], False)):
        array, single = spec.rows(given)
        assert (array.tolist(), array.dtype, single) == (rows, np.float32, was_single)


def test_rows_are_a_copy():
    given = np.zeros((3, 2), np.float32)
    rows, _ = ObservationSpec((2,), "float32").rows(given)
    rows += 1
    assert not given.any()


def test_a_description_of_something_else_is_refused():
    with pytest.raises(InputError, match="does not describe an observation"):
        ObservationSpec.from_json({"dtype": "float32"})
