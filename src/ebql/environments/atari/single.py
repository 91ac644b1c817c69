"""One Atari game as a Gymnasium environment that draws itself, for films and for playing by hand."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from ebql.environments.atari.games import PROTOCOLS, AtariProtocol, rom_of
from ebql.environments.atari.lanes import images_of, make_games
from ebql.environments.lanes.seeded import checked_seed
from ebql.errors import InputError

_HEIGHT, _WIDTH = 210, 160


class AtariGame(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """A game as `AtariLanes` plays it, whole: lost lives don't end it.

    The vector environment has no picture of itself. A second one, in colour and of full size, gets the
    same seeds and actions, and so shows the same game: the same code computes both.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 - Gymnasium's own form

    def __init__(
        self, name: str, protocol: AtariProtocol = PROTOCOLS["paper"], render_mode: str | None = None
    ) -> None:
        rom = rom_of(name)
        self.spec = EnvSpec(name)
        self.render_mode = render_mode
        self._game = make_games(rom, 1, protocol)
        self._screen = make_games(
            rom, 1, protocol, grayscale=False, stack_num=1, img_height=_HEIGHT, img_width=_WIDTH
        )
        shape = (protocol.side, protocol.side, protocol.stack)
        self.observation_space = Box(0, 255, shape, np.uint8)
        self.action_space = Discrete(int(self._game.single_action_space.n))
        self._picture = np.zeros((_HEIGHT, _WIDTH, 3), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start a game; with a seed, the same one whenever the same actions follow."""
        super().reset(seed=seed, options=options)
        if seed is None:  # both emulators need the same one
            seed = int(self.np_random.integers(2**30))
        seeds = np.array([checked_seed(seed) % 2**31])  # the emulator knows no larger ones
        stacks, info = self._game.reset(seed=seeds)
        self._draw(self._screen.reset(seed=seeds)[0])
        return images_of(stacks)[0], _first(info)

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Take an action; the reward is the score's, not clipped."""
        if not self.action_space.contains(action):
            n_actions = self._game.single_action_space.n
            raise InputError(f"Actions must lie between 0 and {n_actions - 1}, not {action}.")
        actions = np.array([action], np.int64)
        stacks, rewards, over, cut, info = self._game.step(actions)
        self._draw(self._screen.step(actions)[0])
        return images_of(stacks)[0], float(rewards[0]), bool(over[0]), bool(cut[0]), _first(info)

    def render(self) -> Any:
        """Return the game's screen (210, 160, 3), the maximum of the last two frames as the agent sees it."""
        return self._picture

    def get_action_meanings(self) -> list[str]:
        """Return what the actions are called."""
        return [action.name for action in self._game.ale.get_action_set()]

    def close(self) -> None:
        """Stop the emulators."""
        self._game.close()
        self._screen.close()

    def _draw(self, screens: NDArray[np.uint8]) -> None:
        self._picture = screens.reshape(_HEIGHT, _WIDTH, 3)


def _first(info: dict[str, Any]) -> dict[str, Any]:
    return {name: values[0] for name, values in info.items()}
