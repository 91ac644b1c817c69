"""Spaces: what an agent observes, and how its actions are numbered."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.deep.networks.observations import ObservationSpec
from ebql.environments import Lanes
from ebql.environments.lanes.joint_actions import JointActions
from ebql.environments.lanes.spaces import LaneSpaces, supported_actions, supported_observations
from ebql.errors import InputError


@dataclass(frozen=True)
class Spaces:
    """The observations and actions that an agent is made for. It numbers actions 0, 1, …, n_actions − 1."""

    observations: ObservationSpec
    n_actions: int
    first_action: int = 0
    """The environment's own number of action 0; the others follow in order."""
    joint_actions: JointActions | None = None
    """The combinations that the action numbers stand for; None if the action space is Discrete."""

    @classmethod
    def of(cls, lanes: Lanes | LaneSpaces) -> "Spaces":
        """Return the spaces of these lanes."""
        observations = ObservationSpec.of(lanes.observation_space)
        return cls(observations, lanes.n_actions, lanes.first_action, lanes.joint_actions)

    @classmethod
    def without_lanes(cls, observations: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> "Spaces":
        """Return the spaces of an agent without an environment; its actions must be Discrete."""
        discrete = supported_actions(actions)
        spec = ObservationSpec.of(supported_observations(observations))
        return cls(spec, int(discrete.n), int(discrete.start))

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> "Spaces":
        """Return the spaces in an agent's description, which may have more keys than `to_json` writes."""
        joint = (
            JointActions.from_json(description["joint_actions"]) if "joint_actions" in description else None
        )
        spaces = cls(
            ObservationSpec.from_json(description["observation"]),
            description["n_actions"],
            description.get("first_action", 0),  # missing in files written by version 0.1
            joint,
        )
        if joint is not None and (joint.n, 0) != (spaces.n_actions, spaces.first_action):
            raise InputError(f"This agent has {spaces.n_actions} actions, but {joint.n} joint actions.")
        return spaces

    def to_json(self) -> dict[str, Any]:
        """Return the part of an agent's description that `from_json` reads."""
        joint = self.joint_actions
        return {
            "observation": self.observations.to_json(),
            "n_actions": self.n_actions,
            "first_action": self.first_action,
            **({} if joint is None else {"joint_actions": asdict(joint)}),
        }

    def require_fit(self, lanes: Lanes | LaneSpaces) -> None:
        """Refuse an environment whose observations or actions differ from these."""
        found = Spaces.of(lanes)
        if not self.observations.gets_channel:  # flattened, as in files written by version 0.1
            found = replace(found, observations=replace(found.observations, gets_channel=False))
        if found != self:
            raise InputError(
                f"The agent expects observations {self.observations} and {self.n_actions} actions starting "
                f"at {self.first_action}; this environment has {found.observations} and {found.n_actions} "
                f"starting at {found.first_action}."
            )

    def own(self, actions: NDArray[np.int64]) -> NDArray[Any]:
        """Return actions as the environment writes them, given their numbers (…)."""
        return actions + self.first_action if self.joint_actions is None else self.joint_actions.own(actions)

    def checked_masks(self, masks: Any, n_rows: int) -> NDArray[np.bool_] | None:
        """Return masks (rows, A) of bool; refuse another shape, and a row that leaves no action.

        The masks of joint actions have an entry for each value of each part, as those of environments.
        """
        if masks is None:
            return None
        legal = np.atleast_2d(np.asarray(masks).astype(bool))
        joint = self.joint_actions
        expected = (n_rows, self.n_actions if joint is None else sum(joint.sizes))
        if legal.shape != expected:
            raise InputError(f"action_masks must have shape {expected}, not {legal.shape}.")
        if joint is not None:
            legal = np.stack([joint.mask(row) for row in legal])
        if not legal.any(1).all():
            raise InputError(f"The action mask of row {legal.any(1).argmin()} leaves no action.")
        return legal
