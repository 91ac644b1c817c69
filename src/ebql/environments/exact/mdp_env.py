"""An `MDP` as a Gymnasium environment, so that agents without a model can learn in it too."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from ebql.environments.exact.mdp import MDP
from ebql.environments.exact.worlds import PAPER_MEANS, meta_chain


class MDPEnv(gymnasium.Env[np.int64, np.int64]):
    """Steps through an `MDP`; observations are state numbers.

    Every state is offered the largest number of actions. Where a state has fewer, the surplus ones do what
    its last one does, and `info["action_mask"]`, `(A,)` of bool, tells them apart.
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
        """Draw the first state."""
        super().reset(seed=seed, options=options)
        model = self.mdp.model
        self._state = int(model.start_states[self._draw(model.start_cumulative)])
        self._steps = 0
        return np.int64(self._state), self._info()

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Draw the next state and the reward."""
        model, state = self.mdp.model, self._state
        played = min(int(action), int(model.action_counts[state]) - 1)
        branch = self._draw(model.cumulative[state, played])
        noise = self.np_random.standard_normal()
        place = state, played, branch
        reward = float(model.reward_means[place] + model.reward_stds[place] * noise)
        self._state = int(model.successors[place])
        self._steps += 1
        terminated = bool(model.terminals[self._state])
        truncated = not terminated and self._steps == self.mdp.time_limit
        return np.int64(self._state), reward, terminated, truncated, self._info()

    def _draw(self, cumulative: NDArray[np.float64]) -> int:
        return int(np.searchsorted(cumulative, self.np_random.random(), side="right"))

    def _info(self) -> dict[str, Any]:
        count = self.mdp.action_counts[self._state]
        return {"action_mask": np.arange(self.mdp.n_actions) < count}


def make_meta_chain(means: Sequence[float] = PAPER_MEANS, std: float = 1.0, actions: int = 10) -> MDPEnv:
    """Return the Meta-Chain as a Gymnasium environment; the arguments are those of `meta_chain`."""
    return MDPEnv(meta_chain(means, std, actions))


def register() -> None:
    """Make `ebql/MetaChain-v0` known to Gymnasium."""
    if "ebql/MetaChain-v0" not in gymnasium.registry:
        gymnasium.register("ebql/MetaChain-v0", "ebql.environments.exact.mdp_env:make_meta_chain")
