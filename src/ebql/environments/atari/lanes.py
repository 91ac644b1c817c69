"""Atari games as lanes over ale-py's vector environment.

Its traps are met here, once. An action that doesn't exist would hang it for ever: actions are checked.
Its own life-loss options restart games or spoil their statistics: they stay off, and a lost life is seen
as a drop in the number of lives while the game goes on. The step after a game's end would only reset the
lane: lanes are reset at once instead, each with a seed of its own, so that every step is a transition.
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
"""Agent steps in a lane after which its next game starts from a new seed.

To seed a game, the emulator loads it anew, which takes as long as a hundred steps or two: too long to do it
for every game where games are short. What came since the last seed has to be replayed to bring a lane back.
"""


def make_games(rom: str, n_lanes: int, protocol: AtariProtocol, **changes: Any) -> Any:
    """Return ale-py's vector environment of `n_lanes` games; `changes` replace arguments of it."""
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
        "noop_max": protocol.most_no_ops + 1,  # it draws from 0, …, noop_max − 1
        "episodic_life": False,
        "life_loss_info": False,
        "reward_clipping": False,
        "use_fire_reset": False,
    }
    return emulator("vector_env").AtariVectorEnv(rom, n_lanes, **{**arguments, **changes})


class AtariLanes(LaneSpaces):
    """N games of one kind; observations are (84, 84, 4) bytes, the newest frame last.

    A game that ends is followed by the next one within the same step. `terminated` is what learning needs:
    a lost life ends a learning episode under a protocol that says so. `Episode`s are whole games.

    At the start, and when a game ends `SEED_PERIOD` steps or more after the lane's last seed, the next game
    gets a seed of (run seed, lane, number of the seed). `restore` takes the actions since then again: at
    most that many and one game's steps a lane, whatever the length of the run.
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
        """Frames of the emulator that one agent step lasts."""
        return self.protocol.frame_skip

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which the protocol cuts a game, at the earliest: no-ops count as frames."""
        return (self.protocol.most_frames - self.protocol.most_no_ops) // self.protocol.frame_skip

    def reset(self, seed: int) -> Observations:
        """Start a seeded game in every lane in the run with this `seed`; return observations (N, …)."""
        self._seed = checked_seed(seed)
        everywhere = np.ones(self.n_lanes, bool)
        self._observations = self._begin(everywhere, seeded=everywhere, numbers=np.zeros(self.n_lanes, int))
        return self._observations

    def step(self, actions: NDArray[np.integer[Any]]) -> LaneStep:
        """Take one action a lane, (N,); a lane whose game ends begins the next one at once."""
        if ((actions < 0) | (actions >= self._n_actions)).any():
            raise InputError(f"Actions must lie between 0 and {self._n_actions - 1}, not {actions.tolist()}.")
        stacks, rewards, over, cut, info = self._environment.step(actions.astype(np.int64))
        lost_life = info["lives"] < self._lives
        self._lives = info["lives"]
        self._returns += rewards
        self._lengths += 1
        for log, action in zip(self._logs, actions.tolist(), strict=True):
            log.append(action)
        next_observations = observations = images_of(stacks)
        ended = over | cut
        episodes: tuple[Episode, ...] = ()
        if ended.any():
            episodes = tuple(self._episode(lane) for lane in np.flatnonzero(ended).tolist())
            due = np.array([len(log) >= SEED_PERIOD for log in self._logs]) & ended
            observations = self._begin(ended, seeded=due, numbers=self._seeds_used + 1)
        self._observations = observations
        return LaneStep(
            next_observations,
            rewards.astype(np.float64),
            over | lost_life if self.protocol.life_loss_terminates else over,
            cut,
            self._valid,
            observations,
            episodes,
        )

    def state(self) -> State:
        """Return the run seed, each lane's number of seeds used, and the actions since the last of them."""
        return {
            "seed": np.array(self._seed, np.int64),
            "seeds_used": self._seeds_used.copy(),
            "lengths": np.array([len(log) for log in self._logs], np.int64),
            "actions": np.array(bytearray().join(self._logs), np.uint8),
            "observations": self._observations.copy(),
        }

    def restore(self, state: State) -> Observations:
        """Replay each lane from its last seed; refuse an emulator that strays from what was saved."""
        lengths = state["lengths"]
        if len(lengths) != self.n_lanes:
            raise InputError(f"The state holds {len(lengths)} lanes; here are {self.n_lanes}.")
        self._seed = int(state["seed"])
        logs = np.split(state["actions"].astype(np.int64), np.cumsum(lengths)[:-1])
        # All lanes step together: one with a shorter log idles first, and is seeded when its turn comes.
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
        """Start a game in the chosen lanes, of them the `seeded` ones from their seed with this number."""
        seeds = np.full(self.n_lanes, -1, np.int64)  # the emulator goes on with its own random numbers
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
    """Return stacks (N, frames, height, width) as images (N, height, width, frames) of their own memory."""
    return np.ascontiguousarray(stacks.transpose(0, 2, 3, 1))
