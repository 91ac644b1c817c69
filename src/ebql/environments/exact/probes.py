"""Five probe environments whose Q-values are known on paper: an agent that misses one has a named bug.

Each has two actions and one number as its observation x. With discount γ, and x at the start 0 or, drawn
at random, ±1:

| `ebql/Probe…-v0`    | reward                         | Q              | a miss points to        |
|---------------------|--------------------------------|----------------|-------------------------|
| `OneStep`           | 1, end                         | 1              | the loss, the optimiser |
| `Observation`       | x = ±1, end                    | x              | the network's input     |
| `Discount`          | 0 at x = 0; 1 at x = 1, end    | γ at 0; 1 at 1 | bootstrap, discount     |
| `Action`            | −1 or +1 by the action, end    | −1, +1         | the action's index      |
| `ObservationAction` | −x for action 0, x for 1, end  | −x, x          | the two together        |
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

Table = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Probe:
    """A tiny world: S states, two actions, no chance but the first state."""

    observations: tuple[float, ...]
    """What is seen in each state, (S,)."""
    n_first: int
    """An episode starts in one of the first `n_first` states, each as likely."""
    following: tuple[int | None, ...]
    """The state that follows each, (S,), or None where the episode ends."""
    rewards: Table
    """The reward of each action in each state, (S, 2)."""
    q: Callable[[float], Table]
    """The exact Q-values (S, 2) as a function of the discount."""


PROBES = {
    "OneStep": Probe((0.0,), 1, (None,), ((1, 1),), lambda _: ((1, 1),)),
    "Observation": Probe((-1.0, 1.0), 2, (None, None), ((-1, -1), (1, 1)), lambda _: ((-1, -1), (1, 1))),
    "Discount": Probe((0.0, 1.0), 1, (1, None), ((0, 0), (1, 1)), lambda discount: ((discount,) * 2, (1, 1))),
    "Action": Probe((0.0,), 1, (None,), ((-1, 1),), lambda _: ((-1, 1),)),
    "ObservationAction": Probe(
        (-1.0, 1.0), 2, (None, None), ((1, -1), (-1, 1)), lambda _: ((1, -1), (-1, 1))
    ),
}


def exact_q(probe: str, discount: float) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return every observation (S, 1) of a probe and its exact Q-values (S, 2)."""
    world = PROBES[probe]
    return np.array(world.observations, np.float32)[:, None], np.array(world.q(discount), np.float64)


class ProbeEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """One of the `PROBES` as a Gymnasium environment."""

    def __init__(self, probe: str) -> None:
        self._world = PROBES[probe]
        self._state = 0
        self.observation_space = Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start in one of the first states."""
        super().reset(seed=seed, options=options)
        self._state = int(self.np_random.integers(self._world.n_first))
        return self._observe(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Pay the reward of `action` and move on; the observation after the end is the last one again."""
        reward = float(self._world.rewards[self._state][action])
        following = self._world.following[self._state]
        if following is not None:
            self._state = following
        return self._observe(), reward, following is None, False, {}

    def _observe(self) -> NDArray[np.float32]:
        return np.array([self._world.observations[self._state]], np.float32)


def register() -> None:
    """Make `ebql/ProbeOneStep-v0` and the other four known to Gymnasium."""
    for probe in PROBES:
        name = f"ebql/Probe{probe}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(name, "ebql.environments.exact.probes:ProbeEnv", kwargs={"probe": probe})
