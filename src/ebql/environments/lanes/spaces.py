"""Which spaces the agents can work with, and which they refuse."""

from typing import Any

import gymnasium
from gymnasium.spaces import Box, Discrete

from ebql.errors import InputTypeError


def supported_observations(space: gymnasium.Space[Any]) -> Box | Discrete:
    """Return `space` if it is a Box or Discrete; refuse any other."""
    if isinstance(space, Box | Discrete):
        return space
    raise InputTypeError(
        f"Observations must be a Box or Discrete space, not {type(space).__name__}: "
        "gymnasium.wrappers.FlattenObservation can make a Box of it."
    )


def supported_actions(space: gymnasium.Space[Any]) -> Discrete:
    """Return `space` if it is Discrete; refuse any other."""
    if isinstance(space, Discrete):
        return space
    kind = "continuous" if isinstance(space, Box) else type(space).__name__
    raise InputTypeError(f"Q-learning chooses among finitely many actions; this environment's are {kind}.")


class LaneSpaces:
    """What lanes know of their environment's spaces."""

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        self._observation_space = supported_observations(observation_space)
        actions = supported_actions(action_space)
        self._n_actions, self._first_action = int(actions.n), int(actions.start)

    @property
    def observation_space(self) -> Box | Discrete:
        """The space of one lane's observation."""
        return self._observation_space

    @property
    def n_actions(self) -> int:
        """The number of actions: 0, 1, …, n_actions − 1, whatever the environment calls them."""
        return self._n_actions

    @property
    def first_action(self) -> int:
        """What the environment calls action 0; the others follow."""
        return self._first_action

    @property
    def frames_per_step(self) -> int:
        """Frames of an emulator that one agent step lasts; 1 where there is no such thing."""
        return 1

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which a time limit cuts an episode; None if no limit is known."""
        return None

    def extend_limit(self, extra_steps: int) -> bool:  # noqa: ARG002 - for lanes that can
        """Return False: these lanes cannot outlast their limit."""
        return False
