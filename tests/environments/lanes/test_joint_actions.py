import numpy as np
import pytest
from gymnasium.spaces import Discrete, MultiBinary, MultiDiscrete

from ebql.environments.lanes.joint_actions import JointActions, joint_actions
from ebql.errors import InputError


def test_joint_actions_are_all_combinations_and_the_last_part_varies_fastest():
    joint = joint_actions(MultiDiscrete([2, 3], start=[1, 0]))
    assert joint.n == 6
    assert joint.own(np.arange(6)).tolist() == [[1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [2, 2]]
    assert all(MultiDiscrete([2, 3], start=[1, 0]).contains(joint.own(action)) for action in range(6))


def test_multi_binary_actions_keep_their_shape_and_type():
    space = MultiBinary((2, 2))
    joint = joint_actions(space)
    assert joint.n == 16
    assert joint.own(5).tolist() == [[0, 1], [0, 1]]
    assert all(space.contains(action) for action in joint.own(np.arange(16)))


def test_a_joint_action_is_legal_if_all_its_parts_are():
    joint = JointActions((2, 3), (0, 0), (2,), "int64")
    # The first part may only be 1, the second 0 or 2.
    assert joint.mask([0, 1, 1, 0, 1]).tolist() == [False, False, False, True, False, True]


def test_too_many_are_one_clear_line_and_other_spaces_have_none():
    assert joint_actions(Discrete(3)) is None
    assert joint_actions(MultiDiscrete([10, 10, 10])).n == 1000
    with pytest.raises(TypeError, match="1,001 joint actions, more than the 1,000"):
        joint_actions(MultiDiscrete([7, 11, 13]))


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": [2, "3"]},
        {"sizes": [2]},
        {"sizes": [2, 0]},
        {"sizes": [2, 501]},
        {"starts": [0.5, 0]},
        {"shape": [3]},
        {"shape": None},
        {"dtype": "object"},
        {"more": 1},
    ],
)
def test_a_description_of_something_else_is_refused(change):
    description = {"sizes": [2, 3], "starts": [1, 0], "shape": [2], "dtype": "int64"}
    assert JointActions.from_json(description) == joint_actions(MultiDiscrete([2, 3], start=[1, 0]))
    with pytest.raises(InputError, match="does not describe joint actions"):
        JointActions.from_json(description | change)
