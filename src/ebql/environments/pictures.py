"""Render environments as RGB pictures, and name their actions."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from ebql.environments.atari.games import PROTOCOLS, AtariProtocol, canonical_name, is_atari
from ebql.environments.atari.single import AtariGame
from ebql.environments.lanes.joint_actions import joint_actions
from ebql.environments.make import make_environment
from ebql.errors import InputError

Picture = NDArray[np.uint8]

_CELL = 40  # side, in pixels, of one of MinAtar's 10 × 10 cells
_BACKGROUND = (24, 26, 34)
_RED, _ORANGE, _GOLD, _GREEN = (222, 82, 92), (240, 150, 72), (250, 208, 92), (112, 194, 122)
_BLUE, _CYAN, _WHITE = (92, 150, 232), (110, 212, 224), (250, 250, 250)
_GREY, _DARK_GREY = (116, 122, 138), (74, 80, 98)

# Colours by MinAtar's channel names, in drawing order: later channels are drawn over earlier ones.
_CHANNELS = {
    "trail": _DARK_GREY,
    "speed1": (62, 66, 80),
    "speed2": (78, 82, 98),
    "speed3": (94, 98, 116),
    "speed4": (110, 114, 134),
    "speed5": (128, 132, 152),
    "oxygen_guage": _CYAN,
    "diver_guage": _GOLD,
    "brick": _RED,
    "alien": _GREEN,
    # These two channels show the direction of the aliens, which is visible in the motion.
    "alien_left": _GREEN,
    "alien_right": _GREEN,
    "enemy": _RED,
    "car": _RED,
    "enemy_fish": _RED,
    "enemy_sub": _ORANGE,
    "gold": _GOLD,
    "diver": _GOLD,
    "enemy_bullet": _ORANGE,
    "friendly_bullet": _WHITE,
    "sub_back": _GREY,
    "sub_front": _BLUE,
    "paddle": _BLUE,
    "player": _BLUE,
    "cannon": _BLUE,
    "chicken": _GOLD,
    "ball": _WHITE,
}

_MINATAR_ACTIONS = {"n": "no-op", "l": "left", "u": "up", "r": "right", "d": "down", "f": "fire"}
_ACTIONS = {
    "CartPole": ("left", "right"),
    "Acrobot": ("−1", "0", "+1"),
    "MountainCar": ("left", "none", "right"),
    "LunarLander": ("none", "left", "main", "right"),
    "FrozenLake": ("left", "down", "right", "up"),
    "CliffWalking": ("up", "right", "down", "left"),
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
}


class MinAtarPictures(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A MinAtar game whose `render()` draws each boolean channel in its own colour."""

    def render(self) -> Any:
        """Return an RGB picture of the game, (H, W, 3)."""
        game: Any = self.unwrapped
        return channels_picture(game.game.state(), game.game.env.channels)


def channels_picture(state: NDArray[np.bool_], channels: dict[str, int]) -> Picture:
    """Draw a MinAtar state (10, 10, C), one square per cell; `channels` maps names to indices."""
    cells = np.empty((*state.shape[:2], 3), np.uint8)
    cells[:] = _BACKGROUND
    for name, colour in _CHANNELS.items():
        if name in channels:
            cells[state[:, :, channels[name]]] = colour
    picture = cells.repeat(_CELL, 0).repeat(_CELL, 1)
    picture[::_CELL] = picture[:, ::_CELL] = _BACKGROUND
    return picture


def make_pictured(
    source: str | Callable[..., gymnasium.Env[Any, Any]], *, protocol: AtariProtocol = PROTOCOLS["paper"]
) -> gymnasium.Env[Any, Any]:
    """Make an environment so that `picture` can render it; raise an error if it cannot.

    `source` is an id, or a function that takes a `render_mode`. `protocol` applies to Atari games.
    """
    if not isinstance(source, str):
        try:
            return source(render_mode="rgb_array")
        except TypeError as error:
            raise InputError(
                f'{source.__name__} cannot be rendered: it takes no render_mode="rgb_array".'
            ) from error
    name = source
    if is_atari(name := canonical_name(name)):
        return AtariGame(name, protocol)
    if name.startswith("MinAtar/"):
        return MinAtarPictures(make_environment(name))
    environment = make_environment(name)
    environment.close()
    if "rgb_array" not in (environment.metadata.get("render_modes") or ()):
        raise InputError(f"Environment {name!r} cannot be rendered: it has no render mode 'rgb_array'.")
    return make_environment(name, render_mode="rgb_array")


def picture(environment: gymnasium.Env[Any, Any]) -> Picture:
    """Render an environment that has been reset, (H, W, 3)."""
    try:
        return np.asarray(environment.render(), np.uint8)
    except (DependencyNotInstalled, ModuleNotFoundError) as error:
        name = environment.spec.id if environment.spec else type(environment.unwrapped).__name__
        raise InputError(f'Rendering {name} needs pygame: pip install "ebql[video]"') from error


def action_names(environment: gymnasium.Env[Any, Any]) -> tuple[str, ...]:
    """Return the names of the actions; where names are unknown, their numbers."""
    base: Any = environment.unwrapped
    if type(base).__module__ == "minatar.gym":
        return tuple(_MINATAR_ACTIONS[base.game.env.action_map[action]] for action in base.action_set)
    if hasattr(base, "get_action_meanings"):
        return tuple(str(meaning).lower() for meaning in base.get_action_meanings())
    if (joint := joint_actions(environment.action_space)) is not None:
        return tuple(" ".join(map(str, joint.own(action).ravel())) for action in range(joint.n))
    n_actions = int(getattr(environment.action_space, "n", 0))
    name = environment.spec.id if environment.spec else ""
    for prefix, names in _ACTIONS.items():
        if name.startswith(prefix) and len(names) == n_actions:
            return names
    return tuple(str(action) for action in range(n_actions))
