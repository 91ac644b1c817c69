import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

from ebql.environments.lanes.structures import Structure, unpack_rows

SPACE = Dict(
    {
        "camera": Box(0, 255, (5, 4, 3), np.uint8),
        "inner": Tuple([Box(-1, 1, (2,), np.float64), Discrete(3, start=-1)]),
        "many": MultiDiscrete([2, 4], start=[0, 5]),
        "flags": MultiBinary(3),
    }
)


def test_packed_observations_come_back_in_every_type():
    structure = Structure.of(SPACE)
    samples = [SPACE.sample() for _ in range(3)]
    packed = np.stack([structure.pack(sample) for sample in samples])
    assert packed.dtype == np.uint8
    assert packed.shape == (3, 60 + 16 + 8 + 16 + 3)
    for leaf, column in structure.columns(packed):
        for row, sample in zip(column, samples, strict=True):
            assert row.dtype == leaf.of(sample).dtype
            np.testing.assert_array_equal(row, leaf.of(sample))


def test_stacked_observations_are_the_same_rows():
    structure = Structure.of(SPACE)
    samples = [SPACE.sample() for _ in range(3)]
    stacked = gymnasium.vector.utils.concatenate(
        SPACE, samples, gymnasium.vector.utils.create_empty_array(SPACE, 3)
    )
    rows, single = structure.rows(stacked)
    assert not single
    np.testing.assert_array_equal(rows, [structure.pack(sample) for sample in samples])
    row, single = structure.rows(samples[1])
    assert single
    np.testing.assert_array_equal(row, rows[1:2])


def test_unpacked_rows_have_the_form_of_the_space():
    structure = Structure.of(SPACE)
    packed = np.stack([structure.pack(SPACE.sample()) for _ in range(3)])
    unpacked = unpack_rows(SPACE, packed)
    assert isinstance(unpacked["inner"], tuple)
    assert unpacked["inner"][0].shape == (3, 2)
    np.testing.assert_array_equal(structure.pack_rows(unpacked), packed)
    flags = MultiBinary(3)
    assert unpack_rows(flags, np.array([[1, 0, 1]], np.uint8)).tolist() == [[1, 0, 1]]


def test_what_does_not_fit_is_one_clear_line():
    structure = Structure.of(Dict({"speed": Box(-1, 1, (2,), np.float32)}))
    for wrong, message in (
        ({}, r"observation\['speed'\] is missing"),
        ({"speed": np.zeros((2, 3))}, r"has shape \(2, 3\)"),
        ({"speed": np.array([0, np.nan])}, "has the value nan: observations must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            structure.rows(wrong)
    with pytest.raises(TypeError, match=r"not Text in observation\['words'\]"):
        Structure.of(Dict({"words": Text(5)}))
