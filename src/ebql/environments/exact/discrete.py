"""Gymnasium environments with finitely many observations and actions, for agents that keep tables."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ebql.environments.exact.mdp import MDP, reachable
from ebql.environments.make import make_environment
from ebql.errors import InputTypeError


class DiscreteEnv:
    """A Gymnasium environment whose observations and actions are counted from zero.

    Accepts `Discrete` observations, and `MultiDiscrete` ones or a `Tuple` of `Discrete` (Blackjack),
    which are flattened to one number, last part fastest.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Wrap `env`; refuse spaces that no table can hold."""
        if not isinstance(env.action_space, spaces.Discrete):
            raise InputTypeError(f"A table needs Discrete actions; this environment has {env.action_space}.")
        self.env = env
        self.n_actions = int(env.action_space.n)
        self._first_action = int(env.action_space.start)
        self._sizes, self._starts = _finite(env.observation_space)
        self.n_states = int(np.prod(self._sizes))

    def reset(self, seed: int | None = None) -> int:
        """Start an episode and return its first state."""
        observation, _ = self.env.reset(seed=seed)
        return self._state(observation)

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Play `action`; return next state, reward, terminated, truncated."""
        observation, reward, terminated, truncated, _ = self.env.step(self._first_action + action)
        return self._state(observation), float(reward), bool(terminated), bool(truncated)

    def close(self) -> None:
        """Free what the environment holds."""
        self.env.close()

    def _state(self, observation: Any) -> int:
        if len(self._sizes) == 1:
            return int(np.asarray(observation).item()) - self._starts[0]
        state = 0
        for part, size, start in zip(observation, self._sizes, self._starts, strict=True):
            state = state * size + int(part) - start
        return state


def _finite(space: spaces.Space[Any]) -> tuple[list[int], list[int]]:
    """Sizes and first values of the parts of a finite observation space."""
    parts = space.spaces if isinstance(space, spaces.Tuple) else [space]
    discrete = [part for part in parts if isinstance(part, spaces.Discrete)]
    if len(discrete) == len(parts):
        return [int(part.n) for part in discrete], [int(part.start) for part in discrete]
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return [int(n) for n in space.nvec], [int(first) for first in space.start]
    raise InputTypeError(f"A table needs Discrete observations; this environment has {space}.")


def make_discrete(environment: str | gymnasium.Env[Any, Any]) -> DiscreteEnv:
    """Return `environment`, an id that Gymnasium knows or an environment, as a `DiscreteEnv`."""
    env = environment if isinstance(environment, gymnasium.Env) else make_environment(environment)
    return DiscreteEnv(env)


def mdp_from_gymnasium(environment: str | gymnasium.Env[Any, Any]) -> MDP:
    """Return the MDP behind a toy-text environment that shows its table `P` (FrozenLake, CliffWalking, Taxi).

    The MDP has exact values and runs compiled; its episodes are truncated where Gymnasium's are.
    """
    world = make_discrete(environment)
    table, start = (getattr(world.env.unwrapped, name, None) for name in ("P", "initial_state_distrib"))
    if table is None or start is None:
        raise InputTypeError(f"{world.env} does not show its transition table; learn from it by stepping.")
    shape = (world.n_states, world.n_actions, world.n_states)
    transitions, rewards = np.zeros(shape), np.zeros(shape)
    ends = np.zeros(world.n_states, dtype=bool)
    goes_on = np.zeros((world.n_states, world.n_states), dtype=bool)
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for probability, successor, reward, terminated in outcomes:
                transitions[state, action, successor] += probability
                rewards[state, action, successor] += probability * reward
                ends[successor] |= terminated
                goes_on[state, successor] |= not terminated
    # An MDP's episode ends by the state it enters, so no step may enter such a state and go on. Tables
    # also hold rows that no episode reaches (Taxi's passenger who is already there): they don't count.
    if np.any(goes_on[reachable(np.asarray(start) > 0, goes_on & ~ends)] & ends):
        raise InputTypeError(f"{world.env} ends episodes by more than the state entered; learn by stepping.")
    np.divide(rewards, transitions, out=rewards, where=transitions > 0)
    limit = world.env.spec.max_episode_steps if world.env.spec else None
    return MDP(
        transitions=transitions,
        reward_means=rewards,
        reward_stds=np.zeros(()),
        start=np.asarray(start, dtype=np.float64),
        terminals=ends,
        time_limit=limit,
        name=world.env.spec.id if world.env.spec else type(world.env.unwrapped).__name__,
    )
