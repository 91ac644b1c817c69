"""Five probe environments with known Q-values. An agent that fails one has a bug in a known place.

Each probe has two actions, and its observation is one number x. It starts at x = 0, or at a random x of ±1.
γ is the discount.

| `ebql/Probe…-v0`    | reward                         | Q              | a failure points to     |
|---------------------|--------------------------------|----------------|-------------------------|
| `OneStep`           | 1, end                         | 1              | the loss, the optimiser |
| `Observation`       | x = ±1, end                    | x              | the network's input     |
| `Discount`          | 0 at x = 0; 1 at x = 1, end    | γ at 0; 1 at 1 | bootstrap, discount     |
| `Action`            | −1 or +1 by the action, end    | −1, +1         | the action's index      |
| `ObservationAction` | −x for action 0, x for 1, end  | −x, x          | observation and action  |
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
    """A tiny MDP with S states and two actions; only the first state is random."""

    observations: tuple[float, ...]
    """The observation in each state, (S,)."""
    n_first: int
    """An episode starts in one of the first `n_first` states, drawn uniformly."""
    following: tuple[int | None, ...]
    """The next state of each state, (S,); None where the episode ends."""
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
    """Return all observations (S, 1) of a probe and its exact Q-values (S, 2)."""
    mdp = PROBES[probe]
    return np.array(mdp.observations, np.float32)[:, None], np.array(mdp.q(discount), np.float64)


class ProbeEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """One of the `PROBES` as a Gymnasium environment."""

    def __init__(self, probe: str) -> None:
        self._probe = PROBES[probe]
        self._state = 0
        self.observation_space = Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start an episode in one of the first states."""
        super().reset(seed=seed, options=options)
        self._state = int(self.np_random.integers(self._probe.n_first))
        return self._observe(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take `action`; the observation after the end of the episode repeats the last one."""
        reward = float(self._probe.rewards[self._state][action])
        following = self._probe.following[self._state]
        if following is not None:
            self._state = following
        return self._observe(), reward, following is None, False, {}

    def _observe(self) -> NDArray[np.float32]:
        return np.array([self._probe.observations[self._state]], np.float32)


def register() -> None:
    """Register `ebql/ProbeOneStep-v0` and the other four with Gymnasium."""
    for probe in PROBES:
        name = f"ebql/Probe{probe}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(name, "ebql.environments.exact.probes:ProbeEnv", kwargs={"probe": probe})
