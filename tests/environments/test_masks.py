import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from ebql.environments.masks import MaskReader, checked_mask
from ebql.errors import RunError


class Masked(gymnasium.Env):
    """Three actions, of which a method in sb3-contrib's manner allows the last two."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3)

    def action_masks(self):
        return [False, True, True]


def test_gymnasiums_masks_come_with_info():
    taxi = gymnasium.make("Taxi-v4")
    _, info = taxi.reset(seed=0)
    mask = MaskReader(taxi, 6).first(info)
    assert mask.dtype == bool
    assert mask.tolist() == [bool(allowed) for allowed in info["action_mask"]]


def test_a_method_counts_before_info_and_is_found_behind_wrappers():
    reader = MaskReader(TimeLimit(Masked(), 5), 3)
    decoy = {"action_mask": np.array([1, 0, 0])}
    assert reader.first(decoy).tolist() == reader.next({}).tolist() == [False, True, True]


def test_an_environment_without_masks_has_none():
    assert MaskReader(gymnasium.make("CartPole-v1"), 2).first({}) is None


@pytest.mark.parametrize(
    ("mask", "message"),
    [([0, 0, 0], "leaves no action"), ([1, 1], "one entry for each of the 3 actions")],
)
def test_masks_that_make_no_sense_are_one_clear_line(mask, message):
    with pytest.raises(RunError, match=message):
        checked_mask(mask, 3)


def test_a_mask_may_not_be_missing_later():
    reader = MaskReader(gymnasium.make("Taxi-v4"), 6)
    with pytest.raises(RunError, match="gave no action mask"):
        reader.next({})
