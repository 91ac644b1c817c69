"""An `MDP` as a Gymnasium environment, so that deep agents can learn in it too."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from ebql.environments.exact.mdp import MDP
from ebql.environments.exact.worlds import PAPER_MEANS, meta_chain


class MDPEnv(gymnasium.Env[np.int64, np.int64]):
    """A Gymnasium environment that simulates an `MDP`; observations are state numbers.

    The action space has the largest number of actions of any state. In a state with fewer, every other action
    acts like the last valid one. `info["action_mask"]`, `(A,)` of bool, marks the valid actions.

    >>> from ebql.environments import chain
    >>> env = MDPEnv(chain(-0.2))
    >>> state, info = env.reset(seed=0)
    >>> int(state), info["action_mask"].sum()  # two of ten actions exist in the first state
    (0, np.int64(2))
    """

    def __init__(self, mdp: MDP) -> None:
        """Wrap `mdp`."""
        self.mdp = mdp
        self.observation_space = Discrete(mdp.n_states)
        self.action_space = Discrete(mdp.n_actions)
        self._state = 0
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Sample the first state."""
        super().reset(seed=seed, options=options)
        model = self.mdp.model
        self._state = int(model.start_states[self._sample(model.start_cumulative)])
        self._steps = 0
        return np.int64(self._state), self._info()

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Sample the next state and the reward."""
        model, state = self.mdp.model, self._state
        exists = self.mdp.exists[state]
        valid_action = int(action) if exists[action] else int(np.flatnonzero(exists)[-1])
        branch = self._sample(model.cumulative[state, valid_action])
        noise = self.np_random.standard_normal()
        transition = state, valid_action, branch
        reward = float(model.reward_means[transition] + model.reward_stds[transition] * noise)
        self._state = int(model.successors[transition])
        self._steps += 1
        terminated = bool(model.terminals[self._state])
        truncated = not terminated and self._steps == self.mdp.time_limit
        return np.int64(self._state), reward, terminated, truncated, self._info()

    def _sample(self, cumulative: NDArray[np.float64]) -> int:
        """Sample an index from a cumulative distribution."""
        return int(np.searchsorted(cumulative, self.np_random.random(), side="right"))

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.mdp.exists[self._state].copy()}


def make_meta_chain(means: Sequence[float] = PAPER_MEANS, std: float = 1.0, actions: int = 10) -> MDPEnv:
    """Return the Meta-Chain as a Gymnasium environment; for the arguments see `meta_chain`."""
    return MDPEnv(meta_chain(means, std, actions))


def register() -> None:
    """Register `ebql/MetaChain-v0` with Gymnasium."""
    if "ebql/MetaChain-v0" not in gymnasium.registry:
        gymnasium.register("ebql/MetaChain-v0", "ebql.environments.exact.mdp_env:make_meta_chain")
