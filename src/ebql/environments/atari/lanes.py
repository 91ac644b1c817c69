"""Atari lanes on top of ale-py's vector environment.

This module works around three pitfalls of that environment. An invalid action would hang it for ever, so
actions are checked. Its life-loss options restart games or distort their statistics, so they stay off; a
drop in the number of lives shows a lost life. The step after the end of a game would only reset the lane,
so a lane is reset within the step that ends its game, and every step is a transition.

Each lane is a vector environment of one game with a thread of its own, because a vector environment can only
step all of its games, and some of them may rest.
"""

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from ebql.environments.atari.games import AtariProtocol, emulator, rom_of
from ebql.environments.lanes.interface import Episode, LaneStep, Observations, State
from ebql.environments.lanes.seeded import checked_seed, episode_seed, require_same
from ebql.environments.lanes.spaces import LaneSpaces
from ebql.errors import InputError

SEED_PERIOD = 5_000
"""Agent steps since a lane's last seed after which its next game gets a new seed.

To seed a game, the emulator reloads it. That takes as long as one or two hundred steps, too long to do it
for every short game. On the other hand, `restore` has to replay all steps since the last seed.
"""

_NO_EPISODES: tuple[Episode, ...] = ()


def make_game(rom: str, protocol: AtariProtocol, **changes: Any) -> Any:
    """Return ale-py's vector environment with a single game; `changes` override its arguments."""
    arguments: dict[str, Any] = {
        "batch_size": 0,  # a step returns every game
        "num_threads": 1,
        "thread_affinity_offset": -1,
        "max_num_frames_per_episode": protocol.most_frames,
        "repeat_action_probability": protocol.repeat_action_probability,
        "full_action_space": protocol.full_action_space,
        "continuous": False,
        "continuous_action_threshold": 0.5,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "img_height": protocol.side,
        "img_width": protocol.side,
        "grayscale": True,
        "stack_num": protocol.stack,
        "frameskip": protocol.frame_skip,
        "maxpool": True,
        "noop_max": protocol.most_no_ops + 1,  # ale-py draws from 0, …, noop_max − 1
        "episodic_life": False,
        "life_loss_info": False,
        "reward_clipping": False,
        "use_fire_reset": False,
    }
    return emulator("vector_env").AtariVectorEnv(rom, 1, **{**arguments, **changes})


class AtariLanes(LaneSpaces):
    """N lanes of the same game; observations are uint8 of shape (84, 84, 4), the newest frame last.

    When a game ends, the next one starts within the same step. `terminated` marks the end of a learning
    episode, which under some protocols is a lost life. An `Episode` is always a whole game.

    A lane is seeded at the start, and again at the end of a game if its last seed is at least `SEED_PERIOD`
    steps old. The seed is derived from (run seed, lane, number of seeds used). `restore` replays the
    actions since the last seed: per lane at most `SEED_PERIOD` steps plus one game, however long the run.
    """

    def __init__(self, game: str, n_lanes: int, protocol: AtariProtocol) -> None:
        self.protocol = protocol
        self._games = [make_game(rom_of(game), protocol) for _ in range(n_lanes)]
        pixels = Box(0, 255, (protocol.side, protocol.side, protocol.stack), np.uint8)
        super().__init__(pixels, self._games[0].single_action_space)
        self._seed = 0
        self._seeds_used = np.zeros(n_lanes, np.int64)
        self._logs = [bytearray() for _ in range(n_lanes)]
        self._lives, self._lengths, self._returns = [0] * n_lanes, [0] * n_lanes, [0.0] * n_lanes
        self._observations: Observations = np.zeros((n_lanes, *pixels.shape), np.uint8)
        self.rest(np.zeros(n_lanes, bool))

    @property
    def n_lanes(self) -> int:
        """The number of lanes N."""
        return len(self._logs)

    @property
    def frames_per_step(self) -> int:
        """Emulator frames per agent step."""
        return self.protocol.frame_skip

    @property
    def step_limit(self) -> int | None:
        """Fewest agent steps after which a game is truncated; no-op frames count towards the limit."""
        return (self.protocol.most_frames - self.protocol.most_no_ops) // self.protocol.frame_skip

    def reset(self, seed: int) -> Observations:
        """Start a seeded game in every lane; `seed` is the run's. Return observations (N, …)."""
        self._seed = checked_seed(seed)
        self.rest(np.zeros(self.n_lanes, bool))
        self._observations = np.stack([self._begin(lane, number=0) for lane in range(self.n_lanes)])
        return self._observations

    def rest(self, resting: NDArray[np.bool_]) -> None:
        """Do not step the `resting` lanes (N,) until the next call or reset."""
        self._valid = ~resting
        self._valid.flags.writeable = False
        self._active = np.flatnonzero(self._valid).tolist()

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action per lane, (N,); a lane whose game ends starts the next one in the same step."""
        if ((actions < 0) | (actions >= self._n_actions)).any():
            raise InputError(f"Actions must lie between 0 and {self._n_actions - 1}, not {actions.tolist()}.")
        actions = actions.astype(np.int64)
        for lane in self._active:
            self._games[lane].send(actions[lane : lane + 1])
        next_observations = self._observations.copy()
        rewards, ended = np.zeros(self.n_lanes), []
        terminated, truncated = np.zeros(self.n_lanes, bool), np.zeros(self.n_lanes, bool)
        for lane in self._active:
            stack, (reward,), (game_over,), (cut,), info = self._games[lane].recv()
            next_observations[lane] = image_of(stack[0])
            rewards[lane], truncated[lane] = reward, cut
            lives = int(info["lives"][0])
            lost_life = lives < self._lives[lane]
            terminated[lane] = game_over or (lost_life and self.protocol.life_loss_terminates)
            self._lives[lane] = lives
            self._returns[lane] += float(reward)
            self._lengths[lane] += 1
            self._logs[lane].append(actions.item(lane))
            if game_over or cut:
                ended.append(lane)
        observations, episodes = next_observations, _NO_EPISODES
        if ended:
            observations = next_observations.copy()
            episodes = tuple(self._end(lane, observations) for lane in ended)
        self._observations = observations
        return LaneStep(
            next_observations, rewards, terminated, truncated, self._valid, observations, episodes
        )

    def state(self) -> State:
        """Return the run seed, the number of seeds used by each lane, and its actions since the last seed."""
        return {
            "seed": np.array(self._seed, np.int64),
            "seeds_used": self._seeds_used.copy(),
            "lengths": np.array([len(log) for log in self._logs], np.int64),
            "actions": np.array(bytearray().join(self._logs), np.uint8),
            "observations": self._observations.copy(),
        }

    def restore(self, state: State) -> Observations:
        """Replay each lane from its last seed; raise an error if the saved observations do not recur."""
        lengths = state["lengths"]
        if len(lengths) != self.n_lanes:
            raise InputError(f"The saved state has {len(lengths)} lanes, but there are {self.n_lanes} here.")
        self._seed = int(state["seed"])
        numbers = state["seeds_used"].tolist()
        self._observations = np.stack([self._begin(lane, number) for lane, number in enumerate(numbers)])
        actions = np.zeros((int(lengths.max()), self.n_lanes), np.int64)
        for lane, log in enumerate(np.split(state["actions"], np.cumsum(lengths)[:-1])):
            actions[: len(log), lane] = log
        for t, row in enumerate(actions):
            self.rest(lengths <= t)
            self.step(row)
        self.rest(np.zeros(self.n_lanes, bool))
        require_same(self._observations, state["observations"])
        return self._observations

    def close(self) -> None:
        """Stop the emulators."""
        for game in self._games:
            game.close()

    def _begin(self, lane: int, number: int | None) -> NDArray[np.uint8]:
        """Start a game in a lane and return its first observation; seed it with the seed of this number.

        Without a number, the emulator keeps its random state.
        """
        seed = -1
        if number is not None:
            seed = episode_seed(self._seed, lane, number)
            self._seeds_used[lane], self._logs[lane] = number, bytearray()
        stack, info = self._games[lane].reset(seed=np.array([seed]))
        self._lives[lane], self._returns[lane], self._lengths[lane] = int(info["lives"][0]), 0.0, 0
        return image_of(stack[0])

    def _end(self, lane: int, observations: Observations) -> Episode:
        """Return the lane's finished game; write the first observation of the next to `observations`."""
        ended = Episode(lane, self._returns[lane], self._lengths[lane])
        is_due = len(self._logs[lane]) >= SEED_PERIOD
        observations[lane] = self._begin(lane, int(self._seeds_used[lane]) + 1 if is_due else None)
        return ended


def image_of(stack: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a stack (frames, height, width) as a view (height, width, frames)."""
    return stack.transpose(1, 2, 0)
