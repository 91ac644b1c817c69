import sys

import numpy as np
import pytest

from ebql.environments import make_environment
from ebql.environments.minatar import GAMES
from ebql.environments.pictures import _CHANNELS, action_names, channels_picture, make_pictured, picture
from ebql.errors import InputError


def test_channels_are_painted_in_their_colours_and_the_ball_over_its_trail():
    channels = {"paddle": 0, "ball": 1, "trail": 2}
    state = np.zeros((10, 10, 3), bool)
    state[9, 4, 0] = state[5, 5, 1] = state[5, 5, 2] = state[4, 4, 2] = True
    painted = channels_picture(state, channels)
    assert painted.shape == (400, 400, 3)
    centres = painted[20::40, 20::40]
    assert tuple(centres[9, 4]) == _CHANNELS["paddle"]
    assert tuple(centres[5, 5]) == _CHANNELS["ball"]
    assert tuple(centres[4, 4]) == _CHANNELS["trail"]
    assert len(np.unique(centres.reshape(-1, 3), axis=0)) == 4  # and the ground


@pytest.mark.parametrize("game", GAMES)
def test_every_channel_of_minatar_has_a_colour_and_every_action_a_name(game):
    environment = make_pictured(f"MinAtar/{game}-v1")
    environment.reset(seed=0)
    assert set(environment.unwrapped.game.env.channels) <= set(_CHANNELS)
    assert len(action_names(environment)) == environment.action_space.n
    assert picture(environment).dtype == np.uint8


def test_actions_are_called_by_name_or_else_by_number():
    assert action_names(make_environment("MinAtar/Breakout-v1")) == ("no-op", "left", "right")
    assert action_names(make_environment("FrozenLake-v1")) == ("left", "down", "right", "up")
    assert action_names(make_environment("ebql/ProbeOneStep-v0")) == ("0", "1")


def test_cartpole_draws_itself():
    pytest.importorskip("pygame")
    environment = make_pictured("CartPole-v1")
    environment.reset(seed=0)
    assert picture(environment).shape == (400, 600, 3)
    environment.close()


def test_an_environment_without_a_picture_is_refused():
    with pytest.raises(InputError, match="cannot be rendered"):
        make_pictured("ebql/ProbeOneStep-v0")


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1"])
def test_a_missing_package_is_named_with_its_command(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    environment = make_pictured(name)
    environment.reset(seed=0)
    with pytest.raises(InputError, match=r'needs pygame: pip install "ebql\[video\]"'):
        picture(environment)
