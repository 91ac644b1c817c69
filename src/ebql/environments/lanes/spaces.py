"""The observation and action spaces that agents support."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from ebql.errors import InputTypeError

Masks = NDArray[np.bool_]


def supported_observations(space: gymnasium.Space[Any]) -> Box | Discrete:
    """Return `space` if it is Box or Discrete; raise an error otherwise."""
    if isinstance(space, Box | Discrete):
        return space
    raise InputTypeError(
        f"Observations must be a Box or Discrete space, not {type(space).__name__}: "
        "wrap the environment in gymnasium.wrappers.FlattenObservation."
    )


def supported_actions(space: gymnasium.Space[Any]) -> Discrete:
    """Return `space` if it is Discrete; raise an error otherwise."""
    if isinstance(space, Discrete):
        return space
    kind = "continuous" if isinstance(space, Box) else type(space).__name__
    raise InputTypeError(f"Q-learning needs Discrete actions; this environment's are {kind}.")


class LaneSpaces:
    """The spaces and limits that all kinds of lanes report."""

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        self._observation_space = supported_observations(observation_space)
        actions = supported_actions(action_space)
        self._n_actions, self._first_action = int(actions.n), int(actions.start)
        self._masks: Masks | None = None

    @property
    def observation_space(self) -> Box | Discrete:
        """The space of one lane's observation."""
        return self._observation_space

    @property
    def n_actions(self) -> int:
        """The number of actions. Lanes number them 0, 1, …, n_actions − 1."""
        return self._n_actions

    @property
    def first_action(self) -> int:
        """The environment's own number of action 0; the others follow in order."""
        return self._first_action

    @property
    def masks(self) -> Masks | None:
        """The legal actions in the states to act on next, (N, A); None in environments without masks."""
        return self._masks

    @property
    def frames_per_step(self) -> int:
        """Emulator frames per agent step; 1 for environments without an emulator."""
        return 1

    @property
    def step_limit(self) -> int | None:
        """Agent steps after which a time limit truncates an episode; None if no limit is known."""
        return None

    def extend_limit(self, extra_steps: int) -> bool:  # noqa: ARG002 - used by lanes that can
        """Return False: the time limit of these lanes cannot be extended."""
        return False
