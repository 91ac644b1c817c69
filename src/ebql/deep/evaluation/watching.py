"""Episodes of the greedy policy, moment by moment: the picture, and what each member thinks of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.deep.agent import Agent
from ebql.deep.evaluation.rollout import evaluation_seed
from ebql.environments.lanes.seeded import episode_seed
from ebql.environments.lanes.spaces import LaneSpaces
from ebql.environments.pictures import Picture, picture
from ebql.errors import InputError


@dataclass(frozen=True)
class Moment:
    """One state on the way of the greedy policy, or the last one, where nothing is left to choose."""

    picture: Picture
    """The environment's picture, (H, W, 3)."""
    values: NDArray[np.float32]
    """The members' Q-values, (K, A); at the end of an episode, those of the choice before."""
    together: NDArray[np.float32]
    """What they say together, (A,): their mean, or of Maxmin their minimum."""
    action: int
    """The action chosen, as an index into the values; at the end of an episode, the last one."""
    episode: int
    """The episode's number, from 0."""
    step: int
    """Steps taken in the episode before this moment."""
    score: float
    """The undiscounted sum of raw rewards so far."""
    ended: bool
    """Whether the episode is over: terminated, truncated, or cut for having lasted `max_steps`."""


def watched(
    agent: Agent, environment: gymnasium.Env[Any, Any], *, episodes: int, seed: int, max_steps: int
) -> Iterator[Moment]:
    """Play episodes greedily on what members say together.

    Equal seeds give equal episodes, those of `Agent.evaluate`. `environment` must draw itself; see
    `ebql.environments.pictures.make_pictured`.
    """
    for name, count in (("episodes", episodes), ("max-steps", max_steps)):
        if count < 1:
            raise InputError(f"{name} must be at least 1, not {count}.")
    if seed < 0:
        raise InputError(f"The seed must not be negative, not {seed}.")
    spaces = LaneSpaces(environment.observation_space, environment.action_space)
    agent.require_fit(spaces)
    return _moments(agent, environment, spaces.first_action, episodes, seed, max_steps)


def _moments(
    agent: Agent,
    environment: gymnasium.Env[Any, Any],
    first_action: int,
    episodes: int,
    seed: int,
    max_steps: int,
) -> Iterator[Moment]:
    for episode in range(episodes):
        observation, _ = environment.reset(seed=episode_seed(evaluation_seed(seed), 0, episode))
        step, score, ended = 0, 0.0, False
        while not ended:
            values = agent.q_values(observation)
            together = agent.together(values)
            action = int(together.argmax())
            yield Moment(picture(environment), values, together, action, episode, step, score, ended)
            observation, reward, terminated, truncated, _ = environment.step(action + first_action)
            step, score = step + 1, score + float(reward)
            ended = terminated or truncated or step == max_steps
        yield Moment(picture(environment), values, together, action, episode, step, score, ended)
