import numpy as np
import pytest

from ebql.deep.networks.observations import ObservationSpec
from ebql.environments.lanes.structures import Leaf
from ebql.errors import InputError


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


VECTOR = {"shape": [4], "dtype": "float32"}
LEAF = {"path": ["a"], "shape": [2], "dtype": "float32", "categories": [], "first": []}


@pytest.mark.parametrize(
    "content",
    [
        {"dtype": "float32"},
        {**VECTOR, "shape": "4"},
        {**VECTOR, "shape": [0.5]},
        {**VECTOR, "shape": [-4]},
        {**VECTOR, "shape": [0]},
        {**VECTOR, "shape": [2**70]},
        {**VECTOR, "dtype": "object"},
        {**VECTOR, "dtype": "float128"},
        {**VECTOR, "first_category": "1"},
        {**VECTOR, "n_categories": 3},
        {**VECTOR, "gets_channel": True},
        {"shape": [], "dtype": "int64", "n_categories": 0},
        {"shape": [7], "dtype": "uint8", "leaves": [LEAF]},
        {"shape": [8], "dtype": "uint8", "leaves": [{**LEAF, "categories": ["a"]}]},
        {"shape": [16], "dtype": "uint8", "leaves": [{**LEAF, "dtype": "int64", "categories": [3, 3]}]},
        {"shape": [8], "dtype": "uint8", "leaves": [{"path": ["a"]}]},
    ],
)
def test_a_description_of_something_else_is_refused(content):
    with pytest.raises(InputError, match="does not describe an observation"):
        ObservationSpec.from_json(content)


def test_a_description_becomes_the_observation_that_it_describes():
    spec = ObservationSpec.from_json({"shape": [8], "dtype": "uint8", "leaves": [LEAF]})
    assert spec == ObservationSpec((8,), "uint8", leaves=(Leaf(("a",), (2,), "float32"),))
    assert ObservationSpec.from_json(VECTOR) == ObservationSpec((4,), "float32")
