"""Episodes of the greedy policy, state by state: the rendered picture and the members' values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.deep.agent import Agent
from ebql.deep.evaluation.rollout import evaluation_seed
from ebql.deep.policy import only_legal
from ebql.environments.lanes.seeded import episode_seed
from ebql.environments.lanes.spaces import LaneSpaces
from ebql.environments.masks import MaskReader
from ebql.environments.pictures import Picture, picture
from ebql.errors import InputError


@dataclass(frozen=True)
class Moment:
    """A state in an episode of the greedy policy; the last one has no action of its own."""

    picture: Picture
    """The rendered picture, (H, W, 3)."""
    values: NDArray[np.float32]
    """The members' Q-values, (K, A); at the end of an episode, those of the state before."""
    together: NDArray[np.float32]
    """The members' mean, (A,); for Maxmin, their minimum."""
    action: int
    """The greedy action, as an index into the values; at the end of an episode, the last action taken."""
    episode: int
    """The episode's number, starting at 0."""
    step: int
    """Steps taken in the episode so far."""
    score: float
    """The undiscounted sum of unclipped rewards so far."""
    ended: bool
    """Whether the episode is over: terminated, truncated, or cut after `max_steps`."""


def watched(
    agent: Agent, environment: gymnasium.Env[Any, Any], *, episodes: int, seed: int, max_steps: int
) -> Iterator[Moment]:
    """Play episodes greedily, and yield a moment for each state.

    Equal seeds give equal episodes; the first one is also the first in `Agent.evaluate`, which plays others
    in further lanes. The `environment` must be able to render itself, as those of
    `ebql.environments.pictures.make_pictured`.
    """
    for name, count in (("episodes", episodes), ("max-steps", max_steps)):
        if count < 1:
            raise InputError(f"{name} must be at least 1, not {count}.")
    if seed < 0:
        raise InputError(f"The seed must not be negative, but is {seed}.")
    spaces = LaneSpaces(environment.observation_space, environment.action_space)
    agent.spaces.require_fit(spaces)
    return _moments(agent, environment, spaces, episodes, seed, max_steps)


def _moments(
    agent: Agent,
    environment: gymnasium.Env[Any, Any],
    spaces: LaneSpaces,
    episodes: int,
    seed: int,
    max_steps: int,
) -> Iterator[Moment]:
    masks = (
        MaskReader(environment, agent.n_actions, agent.joint_actions) if agent.config.action_masks else None
    )
    for episode in range(episodes):
        observation, info = environment.reset(seed=episode_seed(evaluation_seed(seed), 0, episode))
        legal = masks.first(info) if masks is not None else None
        step, score, ended = 0, 0.0, False
        while not ended:
            values = agent.q_values(observation)
            together = agent.together(values)
            action = int(only_legal(together, legal).argmax())
            yield Moment(picture(environment), values, together, action, episode, step, score, ended)
            observation, reward, terminated, truncated, info = environment.step(spaces.own_action(action))
            if masks is not None and legal is not None and not terminated:
                legal = masks.next(info)
            step, score = step + 1, score + float(reward)
            ended = terminated or truncated or step == max_steps
        yield Moment(picture(environment), values, together, action, episode, step, score, ended)
