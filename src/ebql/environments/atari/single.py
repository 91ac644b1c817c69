"""One Atari game as a Gymnasium environment that can be rendered, for videos and for manual play."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from ebql.environments.atari.games import PROTOCOLS, AtariProtocol, rom_of
from ebql.environments.atari.lanes import image_of, make_game
from ebql.environments.lanes.seeded import checked_seed
from ebql.errors import InputError

_HEIGHT, _WIDTH = 210, 160


class AtariGame(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """A whole game with the observations of `AtariLanes`; a lost life does not end the episode.

    ale-py's vector environment cannot render. A second one, in colour and in full size, gets the same seeds
    and actions and therefore shows the same game.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self, name: str, protocol: AtariProtocol = PROTOCOLS["paper"], render_mode: str | None = None
    ) -> None:
        rom = rom_of(name)
        self.spec = EnvSpec(name)
        self.render_mode = render_mode
        self._game = make_game(rom, protocol)
        self._screen = make_game(
            rom, protocol, grayscale=False, stack_num=1, img_height=_HEIGHT, img_width=_WIDTH
        )
        shape = (protocol.side, protocol.side, protocol.stack)
        self.observation_space = Box(0, 255, shape, np.uint8)
        self.action_space = Discrete(int(self._game.single_action_space.n))
        self._picture = np.zeros((_HEIGHT, _WIDTH, 3), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start a game; the same seed and actions reproduce it."""
        super().reset(seed=seed, options=options)
        if seed is None:  # both emulators need the same seed
            seed = int(self.np_random.integers(2**30))
        seeds = np.array([checked_seed(seed) % 2**31])  # the largest seed of the emulator is 2³¹ − 1
        stacks, info = self._game.reset(seed=seeds)
        self._draw(self._screen.reset(seed=seeds)[0])
        return np.ascontiguousarray(image_of(stacks[0])), _first(info)

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Take an action; the reward is the unclipped change of the score."""
        if not self.action_space.contains(action):
            n_actions = self._game.single_action_space.n
            raise InputError(f"Actions must lie between 0 and {n_actions - 1}, not {action}.")
        actions = np.array([action], np.int64)
        stacks, rewards, game_over, truncated, info = self._game.step(actions)
        self._draw(self._screen.step(actions)[0])
        observation, reward = np.ascontiguousarray(image_of(stacks[0])), float(rewards[0])
        return observation, reward, bool(game_over[0]), bool(truncated[0]), _first(info)

    def render(self) -> Any:
        """Return the screen (210, 160, 3), the pixelwise maximum of the last two frames."""
        return self._picture

    def get_action_meanings(self) -> list[str]:
        """Return the names of the actions."""
        return [action.name for action in self._game.ale.get_action_set()]

    def close(self) -> None:
        """Stop the emulators."""
        self._game.close()
        self._screen.close()

    def _draw(self, screens: NDArray[np.uint8]) -> None:
        self._picture = screens.reshape(_HEIGHT, _WIDTH, 3)


def _first(info: dict[str, Any]) -> dict[str, Any]:
    return {name: values[0] for name, values in info.items()}
