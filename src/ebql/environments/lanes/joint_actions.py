"""Joint actions: the choices of a MultiDiscrete or MultiBinary space, numbered from 0."""

import math
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import MultiBinary, MultiDiscrete
from numpy.typing import NDArray

from ebql.environments.lanes.structures import NUMBERS
from ebql.errors import InputError, InputTypeError
from ebql.typed import typed

MOST_JOINT_ACTIONS = 1_000
"""A network has an output for each joint action, and every combination has to be tried."""


@dataclass(frozen=True)
class JointActions:
    """All combinations of the parts of an action; the last part varies fastest."""

    sizes: tuple[int, ...]
    """The number of values of each part."""
    starts: tuple[int, ...]
    """The lowest value of each part."""
    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, space: MultiDiscrete | MultiBinary) -> "JointActions":
        """Return the joint actions of a space; refuse a space with too many."""
        shape, dtype = tuple(space.shape), np.dtype(space.dtype).name
        if isinstance(space, MultiBinary):
            n_parts = math.prod(shape)
            joint = cls((2,) * n_parts, (0,) * n_parts, shape, dtype)
        else:
            joint = cls(tuple(space.nvec.ravel().tolist()), tuple(space.start.ravel().tolist()), shape, dtype)
        if joint.n > MOST_JOINT_ACTIONS:
            raise InputTypeError(
                f"{space} has {joint.n:,} joint actions, more than the {MOST_JOINT_ACTIONS:,} that agents "
                "take: choose fewer parts or fewer values."
            )
        return joint

    @classmethod
    def from_json(cls, content: Any) -> "JointActions":
        """Rebuild joint actions from the output of `dataclasses.asdict` after a round trip through JSON."""
        try:
            joint: JointActions = typed(cls, content)
        except TypeError:
            joint = cls((), (), (0,), "")
        n_parts = math.prod(joint.shape)
        is_possible = joint.dtype in NUMBERS and n_parts == len(joint.sizes) == len(joint.starts) > 0
        if not is_possible or min(joint.sizes) < 1 or joint.n > MOST_JOINT_ACTIONS:
            raise InputError(f"This does not describe joint actions: {content!r:.200}.")
        return joint

    @property
    def n(self) -> int:
        """The number of joint actions."""
        return math.prod(self.sizes)

    def own(self, actions: Any) -> NDArray[Any]:
        """Return actions as the environment writes them, (…, *shape), given their numbers (…)."""
        parts: NDArray[Any] = np.stack(np.unravel_index(actions, self.sizes), -1) + np.array(self.starts)
        return parts.astype(self.dtype).reshape(*np.shape(actions), *self.shape)

    def mask(self, by_part: Any) -> NDArray[np.bool_]:
        """Return which joint actions (A,) are legal, given a mask of each part's values, one after the other.

        A joint action is legal if all its parts are.
        """
        legal = np.ones(1, np.bool_)
        for part in np.split(np.asarray(by_part).astype(bool), np.cumsum(self.sizes)[:-1]):
            legal = (legal[:, None] & part).ravel()
        return legal


def joint_actions(space: gymnasium.Space[Any]) -> JointActions | None:
    """Return the joint actions of a MultiDiscrete or MultiBinary space; None for any other space."""
    return JointActions.of(space) if isinstance(space, MultiDiscrete | MultiBinary) else None
