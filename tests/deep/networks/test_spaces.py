import json

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.spaces import Spaces
from ebql.environments.lanes.spaces import LaneSpaces
from ebql.errors import InputError, InputTypeError

VECTOR = Box(-1, 1, (2,), np.float32)


@pytest.mark.parametrize("actions", [Discrete(6, start=3), MultiDiscrete([2, 3]), MultiDiscrete([3, 2])])
def test_spaces_survive_json_and_fit_their_own_environment_alone(actions):
    lanes = LaneSpaces(VECTOR, actions)
    spaces = Spaces.from_json(json.loads(json.dumps(Spaces.of(lanes).to_json())))
    assert spaces == Spaces.of(lanes)
    spaces.require_fit(lanes)
    for other in (Discrete(6), Discrete(5, start=3), MultiDiscrete([6])):
        with pytest.raises(InputError, match=r"expects observations \(2,\) float32 and 6 actions"):
            spaces.require_fit(LaneSpaces(VECTOR, other))


def test_actions_are_returned_as_the_environment_writes_them():
    assert Spaces.of(LaneSpaces(VECTOR, Discrete(3, start=5))).own(np.array([0, 2])).tolist() == [5, 7]
    joint = Spaces.of(LaneSpaces(VECTOR, MultiDiscrete([2, 3])))
    assert joint.own(np.array([0, 2, 3])).tolist() == [[0, 0], [0, 2], [1, 0]]


def test_an_agent_without_an_environment_needs_discrete_actions():
    spaces = Spaces.without_lanes(VECTOR, Discrete(4, start=1))
    assert spaces == Spaces(ObservationSpec((2,), "float32"), 4, 1)
    with pytest.raises(InputTypeError, match="continuous"):
        Spaces.without_lanes(VECTOR, VECTOR)


def test_masks_must_have_a_row_for_each_observation_and_leave_an_action():
    spaces = Spaces(ObservationSpec((2,), "float32"), 3)
    assert spaces.checked_masks(None, 2) is None
    assert spaces.checked_masks([1, 0, 1], 1).tolist() == [[True, False, True]]
    with pytest.raises(InputError, match=r"shape \(2, 3\), not \(1, 3\)"):
        spaces.checked_masks([1, 0, 1], 2)
    with pytest.raises(InputError, match="mask of row 1 leaves no action"):
        spaces.checked_masks([[0, 1, 0], [0, 0, 0]], 2)
