"""The observation and action spaces that agents support."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from ebql.environments.lanes.joint_actions import joint_actions
from ebql.environments.lanes.structures import Structure, is_structured
from ebql.errors import InputError, InputTypeError, RunError

Masks = NDArray[np.bool_]


def supported_observations(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """Return `space` if a network can take its observations; raise an error otherwise."""
    if is_structured(space):
        Structure.of(space)
    return space


def supported_actions(space: gymnasium.Space[Any]) -> Discrete:
    """Return `space` if it is Discrete; raise an error otherwise."""
    if isinstance(space, Discrete):
        return space
    kind = "continuous" if isinstance(space, Box) else type(space).__name__
    raise InputTypeError(f"Q-learning needs Discrete actions; this environment's are {kind}.")


@contextmanager
def _environment_errors() -> Iterator[None]:
    """Turn what is wrong with an observation into an error of the run."""
    try:
        yield
    except InputError as error:
        raise RunError(f"The environment's {error}") from error


class LaneSpaces:
    """The spaces and limits that all kinds of lanes report."""

    def __init__(self, observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any]) -> None:
        self._observation_space = space = observation_space
        self._structure = Structure.of(space) if is_structured(space) else None
        self._stored_shape = tuple(space.shape or ())
        self._stored_dtype: Any = space.dtype
        if self._structure is not None:
            self._stored_shape, self._stored_dtype = (self._structure.n_bytes,), np.uint8
        self.joint_actions = joint_actions(action_space)
        """The combinations that actions stand for; None if the action space is Discrete."""
        if self.joint_actions is None:
            actions = supported_actions(action_space)
            self._n_actions, self._first_action = int(actions.n), int(actions.start)
        else:
            self._n_actions, self._first_action = self.joint_actions.n, 0
        self._masks: Masks | None = None

    @property
    def instances(self) -> list[gymnasium.Env[Any, Any]]:
        """The environments that are stepped, without their wrappers, if they are objects in this process."""
        return []

    def _require_one_each(self, message: str) -> None:
        """Refuse an environment that is in two lanes."""
        if len(set(map(id, self.instances))) < len(self.instances):
            raise InputError(f"{message}: let it make a new one at every call.")

    def _as_stored(self, observation: Any) -> Any:
        """Return an observation as lanes store it: itself, or the bytes of a structured one."""
        if self._structure is None:
            return observation
        with _environment_errors():
            return self._structure.pack(observation)

    def _rows_as_stored(self, observations: Any) -> NDArray[Any]:
        """Return a copy of a vector environment's observations (N, …) as lanes store them."""
        if self._structure is None:
            return np.array(observations)
        with _environment_errors():
            return self._structure.pack_rows(observations)

    def own_action(self, action: Any) -> Any:
        """Return actions as the environment writes them, given their numbers."""
        if self.joint_actions is None:
            return action + self._first_action
        return self.joint_actions.own(action)

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
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

    def rest(self, resting: Masks) -> None:
        """Do nothing: these lanes are always stepped together."""
