"""Resets and steps of lanes with checks: whatever goes wrong becomes one line that says when it happened."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ebql.environments.lanes.interface import Lanes, LaneStep, Observations
from ebql.errors import RunError, UserError


@contextmanager
def environment_errors(when: str) -> Iterator[None]:
    """Turn any exception of an environment into a one-line `RunError` that says `when` it was raised."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        raise RunError(f"The environment raised {type(error).__name__} {when}: {first_line}") from error


def reset_lanes(lanes: Lanes, seed: int) -> Observations:
    """Reset every lane; raise a `RunError` if an environment fails or an observation is not finite."""
    with environment_errors("on reset"):
        observations = lanes.reset(seed)
    _require_finite(observations, "on reset")
    return observations


def step_lanes(lanes: Lanes, actions: NDArray[np.int64], step: int, during: str = "") -> LaneStep:
    """Step every lane; raise a `RunError` if an environment fails or returns a number that is not finite.

    The error names `step`, the number of steps taken before; `during` says of what, if not of training.
    """
    when = f"after step {step}{during}"
    with environment_errors(when):
        result = lanes.step(actions)
    if not np.isfinite(result.rewards).all():
        wrong = result.rewards[~np.isfinite(result.rewards)][0]
        raise RunError(f"The environment gave the reward {wrong} {when}: it must be finite.")
    _require_finite(result.next_observations, when)
    if result.observations is not result.next_observations:
        _require_finite(result.observations, when)
    return result


def first_not_finite(observations: Observations) -> tuple[int, float] | None:
    """Return the row and the value of the first NaN or infinity in observations (rows, …); None without one.

    Unnoticed, it would show up much later, as a loss that is not a number.
    """
    if observations.dtype.kind != "f" or np.isfinite(observations).all():
        return None
    place = tuple(np.argwhere(~np.isfinite(observations))[0])
    return int(place[0]), float(observations[place])


def _require_finite(observations: Observations, when: str) -> None:
    """Refuse observations (N, …) that contain a NaN or an infinity; with several lanes, name the lane."""
    found = first_not_finite(observations)
    if found is None:
        return
    lane, wrong = found
    which = f" in lane {lane} (of 0 to {len(observations) - 1})" if len(observations) > 1 else ""
    raise RunError(f"The environment{which} gave an observation with {wrong} {when}: it must be finite.")
