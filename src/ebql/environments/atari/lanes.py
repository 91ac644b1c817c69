"""Atari lanes on top of ale-py's vector environment.

This module works around three pitfalls of that environment. An invalid action would hang it for ever, so
actions are checked. Its life-loss options restart games or distort their statistics, so they stay off; a
drop in the number of lives shows a lost life. The step after the end of a game would only reset the lane,
so a lane is reset within the step that ends its game, and every step is a transition.
"""

import os
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


def make_games(rom: str, n_lanes: int, protocol: AtariProtocol, **changes: Any) -> Any:
    """Return ale-py's vector environment with `n_lanes` games; `changes` override its arguments."""
    arguments: dict[str, Any] = {
        "batch_size": 0,  # every step steps every lane
        "num_threads": min(n_lanes, os.cpu_count() or 1),
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
    return emulator("vector_env").AtariVectorEnv(rom, n_lanes, **{**arguments, **changes})


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
        self._environment = make_games(rom_of(game), n_lanes, protocol)
        pixels = Box(0, 255, (protocol.side, protocol.side, protocol.stack), np.uint8)
        super().__init__(pixels, self._environment.single_action_space)
        self._seed = 0
        self._seeds_used = np.zeros(n_lanes, np.int64)
        self._logs = [bytearray() for _ in range(n_lanes)]
        self._lives = np.zeros(n_lanes, np.int32)
        self._returns = np.zeros(n_lanes)
        self._lengths = np.zeros(n_lanes, np.int64)
        self._observations: Observations = np.zeros((n_lanes, *pixels.shape), np.uint8)
        self._valid = np.ones(n_lanes, bool)
        self._valid.flags.writeable = False

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
        all_lanes = np.ones(self.n_lanes, bool)
        self._observations = self._begin(all_lanes, seeded=all_lanes, numbers=np.zeros(self.n_lanes, int))
        return self._observations

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action per lane, (N,); a lane whose game ends starts the next one in the same step."""
        if ((actions < 0) | (actions >= self._n_actions)).any():
            raise InputError(f"Actions must lie between 0 and {self._n_actions - 1}, not {actions.tolist()}.")
        stacks, rewards, game_over, truncated, info = self._environment.step(actions.astype(np.int64))
        lost_life = info["lives"] < self._lives
        self._lives = info["lives"]
        self._returns += rewards
        self._lengths += 1
        for log, action in zip(self._logs, actions.tolist(), strict=True):
            log.append(action)
        next_observations = observations = images_of(stacks)
        ended = game_over | truncated
        episodes: tuple[Episode, ...] = ()
        if ended.any():
            episodes = tuple(self._episode(lane) for lane in np.flatnonzero(ended).tolist())
            due = np.array([len(log) >= SEED_PERIOD for log in self._logs]) & ended
            observations = self._begin(ended, seeded=due, numbers=self._seeds_used + 1)
        self._observations = observations
        return LaneStep(
            next_observations,
            rewards.astype(np.float64),
            game_over | lost_life if self.protocol.life_loss_terminates else game_over,
            truncated,
            self._valid,
            observations,
            episodes,
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
        logs = np.split(state["actions"].astype(np.int64), np.cumsum(lengths)[:-1])
        # All lanes step together. A lane with a shorter log takes no-ops until its own replay starts.
        longest = int(lengths.max())
        for t in range(longest + 1):
            starting = lengths == longest - t
            if t == 0 or starting.any():
                chosen = starting if t else np.ones_like(starting)
                self._observations = self._begin(chosen, seeded=starting, numbers=state["seeds_used"])
            if t < longest:
                offsets = t - (longest - lengths)
                self.step(np.array([log[i] if i >= 0 else 0 for log, i in zip(logs, offsets, strict=True)]))
        require_same(self._observations, state["observations"])
        return self._observations

    def close(self) -> None:
        """Stop the emulators."""
        self._environment.close()

    def _begin(
        self, chosen: NDArray[np.bool_], seeded: NDArray[np.bool_], numbers: NDArray[np.integer[Any]]
    ) -> Observations:
        """Start a game in the `chosen` lanes; give the `seeded` ones among them the seed of that number."""
        seeds = np.full(self.n_lanes, -1, np.int64)  # -1: the emulator keeps its random state
        for lane in np.flatnonzero(seeded).tolist():
            seeds[lane] = episode_seed(self._seed, lane, int(numbers[lane]))
            self._seeds_used[lane] = numbers[lane]
            self._logs[lane] = bytearray()
        stacks, info = self._environment.reset(seed=seeds[chosen], options={"reset_mask": chosen})
        self._lives = info["lives"]
        self._returns[chosen] = 0.0
        self._lengths[chosen] = 0
        return images_of(stacks)

    def _episode(self, lane: int) -> Episode:
        return Episode(lane, float(self._returns[lane]), int(self._lengths[lane]))


def images_of(stacks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Copy frame stacks (N, frames, height, width) to images (N, height, width, frames)."""
    return np.ascontiguousarray(stacks.transpose(0, 2, 3, 1))
