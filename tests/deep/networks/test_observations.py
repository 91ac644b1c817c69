import numpy as np
import pytest

from ebql.deep.networks.observations import ObservationSpec
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


def test_a_description_of_something_else_is_refused():
    with pytest.raises(InputError, match="does not describe an observation"):
        ObservationSpec.from_json({"dtype": "float32"})
