"""Gymnasium environments with finitely many observations and actions, for tabular agents."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces, wrappers

from ebql.environments.exact.mdp import MDP, reachable
from ebql.environments.make import make_environment
from ebql.environments.masks import Mask, MaskReader
from ebql.environments.modules import import_module_of
from ebql.errors import InputTypeError

_HARMLESS = (
    wrappers.HumanRendering,
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.TimeLimit,
)


class DiscreteEnv:
    """A Gymnasium environment whose states and actions are numbered from zero.

    Observations may be `Discrete`, `MultiDiscrete` or a `Tuple` of `Discrete` (Blackjack). Several parts are
    flattened to one number; the last part varies fastest.

    >>> blackjack = DiscreteEnv(gymnasium.make("Blackjack-v1"))
    >>> blackjack.n_states, 0 <= blackjack.reset(seed=0) < 704  # 32 sums × 11 cards × ace or not
    (704, True)
    """

    action_mask: Mask | None
    """The legal actions of the current state, (A,); None if the environment gives no masks."""

    def __init__(self, env: gymnasium.Env[Any, Any], *, action_masks: bool = True) -> None:
        """Wrap `env`; raise an error if its spaces are not finite. Without `action_masks`, none is read."""
        if not isinstance(env.action_space, spaces.Discrete):
            raise InputTypeError(
                f"A tabular agent needs Discrete actions; this environment has {env.action_space}."
            )
        self.env = env
        self.n_actions = int(env.action_space.n)
        self._first_action = int(env.action_space.start)
        self._sizes, self._starts = _finite_parts(env.observation_space)
        self.n_states = int(np.prod(self._sizes))
        self._masks = MaskReader(env, self.n_actions) if action_masks else None
        self.action_mask = None

    def reset(self, seed: int | None = None) -> int:
        """Start an episode and return its first state; with a seed, nothing of earlier episodes counts."""
        observation, info = self.env.reset(seed=seed)
        mask = None if self._masks is None else self._masks.first(info)
        # As in lanes, masks exist from the first reset that gives one; a later reset may leave its own out.
        if mask is None and self.action_mask is not None and seed is None:
            mask = np.ones(self.n_actions, bool)
        self.action_mask = mask
        return self._state(observation)

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Take `action`; return next state, reward, terminated, truncated."""
        observation, reward, terminated, truncated, info = self.env.step(self._first_action + action)
        if self._masks is not None and self.action_mask is not None and not terminated:
            self.action_mask = self._masks.next(info)
        return self._state(observation), float(reward), bool(terminated), bool(truncated)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _state(self, observation: Any) -> int:
        if len(self._sizes) == 1:
            return int(np.asarray(observation).item()) - self._starts[0]
        state = 0
        for part, size, start in zip(observation, self._sizes, self._starts, strict=True):
            state = state * size + int(part) - start
        return state


def _finite_parts(space: spaces.Space[Any]) -> tuple[list[int], list[int]]:
    """Return the size and the first value of each part of a finite observation space."""
    parts = space.spaces if isinstance(space, spaces.Tuple) else [space]
    discrete = [part for part in parts if isinstance(part, spaces.Discrete)]
    if len(discrete) == len(parts):
        return [int(part.n) for part in discrete], [int(part.start) for part in discrete]
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return [int(n) for n in space.nvec], [int(first) for first in space.start]
    raise InputTypeError(f"A tabular agent needs Discrete observations; this environment has {space}.")


def make_discrete(environment: str | gymnasium.Env[Any, Any], *, action_masks: bool = True) -> DiscreteEnv:
    """Return a `DiscreteEnv` for a Gymnasium id or environment; the module that an id names is imported.

    >>> make_discrete("FrozenLake-v1").n_states
    16
    """
    if isinstance(environment, str):
        import_module_of(environment)
        environment = make_environment(environment)
    return DiscreteEnv(environment, action_masks=action_masks)


def require_unchanged(env: gymnasium.Env[Any, Any]) -> None:
    """Refuse an environment in a wrapper that may change its transitions or rewards."""
    while isinstance(env, gymnasium.Wrapper):
        if not isinstance(env, _HARMLESS):
            raise InputTypeError(
                f"The wrapper {type(env).__name__} may change the transitions or the rewards: pass {env} to "
                "learn() as it is."
            )
        env = env.env


def mdp_from_gymnasium(environment: str | gymnasium.Env[Any, Any], *, action_masks: bool = False) -> MDP:
    """Return the MDP of a toy text environment with a transition table `P` (FrozenLake, CliffWalking, Taxi).

    The MDP has exact values and runs compiled. It keeps the environment's time limit. With `action_masks`,
    its states have only the actions that Taxi's masks allow.

    >>> mdp_from_gymnasium("FrozenLake-v1").n_states
    16
    """
    discrete = make_discrete(environment)
    env = discrete.env
    require_unchanged(env)
    table, start = (getattr(env.unwrapped, name, None) for name in ("P", "initial_state_distrib"))
    if table is None or start is None:
        raise InputTypeError(f"{env} has no transition table: pass it to learn() as it is.")
    n_states, n_actions = discrete.n_states, discrete.n_actions
    transitions, rewards = np.zeros((2, n_states, n_actions, n_states))
    terminals = np.zeros(n_states, dtype=bool)
    continues = np.zeros((n_states, n_states), dtype=bool)
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for probability, successor, reward, terminated in outcomes:
                transitions[state, action, successor] += probability
                rewards[state, action, successor] += probability * reward
                terminals[successor] |= terminated
                continues[state, successor] |= not terminated
    # An `MDP` terminates whenever it enters a terminal state, so no transition may enter one and continue.
    # Rows that no episode reaches (in Taxi, the passenger is already at the destination) do not count.
    if np.any(continues[reachable(np.asarray(start) > 0, continues & ~terminals)] & terminals):
        raise InputTypeError(
            f"In {env} termination depends on more than the next state: pass it to learn() as it is."
        )
    np.divide(rewards, transitions, out=rewards, where=transitions > 0)
    masks = None
    if action_masks:
        mask_of = getattr(env.unwrapped, "action_mask", None)
        if mask_of is None:
            raise InputTypeError(f"{env} has no method action_mask(state).")
        masks = np.array([mask_of(state) for state in range(n_states)], np.bool_)
    return MDP(
        transitions=transitions,
        reward_means=rewards,
        reward_stds=np.zeros(()),
        start=np.asarray(start, dtype=np.float64),
        terminals=terminals,
        time_limit=env.spec.max_episode_steps if env.spec else None,
        name=env.spec.id if env.spec else type(env.unwrapped).__name__,
        action_masks=masks,
    )
