"""Action masks: which actions are legal in an environment's current state.

Two conventions are understood: `info["action_mask"]` (Gymnasium's), and a method `action_masks()` of the
environment or of one of its wrappers (sb3-contrib's). If an environment has both, the method is used.
"""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.environments.lanes.joint_actions import JointActions
from ebql.errors import RunError

Mask = NDArray[np.bool_]


class MaskReader:
    """Reads the masks of one environment, (A,) of bool; A is `n_actions`."""

    def __init__(
        self, environment: gymnasium.Env[Any, Any], n_actions: int, joint: JointActions | None = None
    ) -> None:
        has_method = environment.has_wrapper_attr("action_masks")
        self._method = environment.get_wrapper_attr("action_masks") if has_method else None
        self._n_actions, self._joint = n_actions, joint

    def first(self, info: Mapping[str, Any]) -> Mask | None:
        """Return the mask after a reset that gave this `info`; None if the environment gives no masks."""
        if self._method is None and "action_mask" not in info:
            return None
        return self.next(info)

    def next(self, info: Mapping[str, Any]) -> Mask:
        """Return the mask of a state in which the episode goes on; refuse one that leaves no action."""
        if self._method is None and "action_mask" not in info:
            raise RunError("The environment gave no action mask, although it gave one at its first reset.")
        mask = info["action_mask"] if self._method is None else self._method()
        return checked_mask(mask, self._n_actions, self._joint)


def checked_mask(mask: Any, n_actions: int, joint: JointActions | None = None) -> Mask:
    """Return a mask as an array (A,) of bool; refuse another shape, and a mask that leaves no action.

    The mask of `joint` actions has an entry for each value of each part, as in sb3-contrib.
    """
    array = np.asarray(mask).astype(bool)
    if joint is not None:
        if array.shape != (n_values := sum(joint.sizes),):
            raise RunError(
                f"The mask of a joint action must have one entry for each of the {n_values} values of its "
                f"parts, not {array.shape}."
            )
        array = joint.mask(array)
    if array.shape != (n_actions,):
        raise RunError(
            f"An action mask must have one entry for each of the {n_actions} actions, not {array.shape}."
        )
    if not array.any():
        raise RunError("The action mask of a state leaves no action: an episode must end in such a state.")
    return array
