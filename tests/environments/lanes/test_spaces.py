import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text
from gymnasium.vector import SyncVectorEnv

from ebql.environments import make_lanes
from ebql.environments.lanes.spaces import LaneSpaces, supported_actions, supported_observations


@pytest.mark.parametrize("wrap", [lambda make: make, lambda make: SyncVectorEnv([make])])
def test_actions_count_from_zero_whatever_the_environment_calls_them(wrap, corridor):
    lanes = make_lanes(wrap(lambda: corridor(start_of_actions=5)))
    lanes.reset(0)
    assert (lanes.n_actions, lanes.first_action) == (2, 5)
    assert not lanes.step(np.array([0])).terminated.any()
    assert lanes.step(np.array([1])).terminated.all()


def test_boxes_and_discrete_spaces_are_supported():
    for space in (Box(0, 1, (3,)), Discrete(4), Dict({"a": Discrete(2)})):
        assert supported_observations(space) is space
    assert supported_actions(Discrete(2, start=1)) == Discrete(2, start=1)


def test_other_spaces_are_refused_in_one_line():
    with pytest.raises(TypeError, match=r"not Text in observation\['a'\]"):
        supported_observations(Dict({"a": Text(3)}))
    with pytest.raises(TypeError, match="Discrete actions; this environment's are continuous"):
        supported_actions(Box(0, 1, (1,)))
    with pytest.raises(TypeError, match="this environment's are MultiDiscrete"):
        supported_actions(MultiDiscrete([2, 2]))


def test_lanes_without_an_emulator_or_a_limit():
    spaces = LaneSpaces(Discrete(3), Discrete(2))
    assert (spaces.frames_per_step, spaces.step_limit, spaces.extend_limit(10)) == (1, None, False)
