"""Episodes played without learning, and what the members said on the way."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebql.deep.replay import Array
from ebql.environments import Lanes, LaneStep
from ebql.errors import RunError, UserError


@dataclass(frozen=True)
class Trace:
    """One episode of T steps: what was earned and what had been expected, each (T,)."""

    rewards: NDArray[np.float64]
    """The raw rewards, as the environment gave them."""
    values: NDArray[np.float64]
    """The members' mean value of the action taken."""
    spreads: NDArray[np.float64]
    """The members' standard deviation (divisor K) of that value."""
    agreements: NDArray[np.float64]
    """The share of members whose own best action is the mean's best action."""
    terminated: bool
    """False if the episode was cut by a time limit: then more would have been earned."""

    @property
    def score(self) -> float:
        """The undiscounted sum of raw rewards."""
        return float(self.rewards.sum())


def step_lanes(lanes: Lanes, actions: NDArray[np.int64], step: int) -> LaneStep:
    """Step the lanes; whatever an environment raises becomes a `RunError` of one line."""
    try:
        return lanes.step(actions)
    except UserError:
        raise
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        raise RunError(
            f"The environment raised {type(error).__name__} after step {step}: {first_line}"
        ) from error


class _Notes:
    """A lane's current episode, step by step."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float]] = []

    def close(self, *, terminated: bool) -> Trace:
        rewards, values, spreads, agreements = np.array(self.rows, np.float64).T
        self.rows = []
        return Trace(rewards, values, spreads, agreements, terminated)


def play(
    values_of: Callable[[Array], Array], lanes: Lanes, episodes: int, seed: int, epsilon: float = 0.0
) -> list[Trace]:
    """Play ε-greedily on the members' mean; `values_of` maps observations (N, …) to values (N, K, A).

    Each lane plays a fixed share of the episodes. To take the first ones to finish, whichever the lane,
    would favour short episodes.
    """
    quota = [episodes // lanes.n_lanes + (i < episodes % lanes.n_lanes) for i in range(lanes.n_lanes)]
    rng = np.random.default_rng(seed)
    notes = [_Notes() for _ in quota]
    traces: list[list[Trace]] = [[] for _ in quota]
    every_lane = np.arange(lanes.n_lanes)
    observations, step = lanes.reset(seed), 0
    while any(len(done) < wanted for done, wanted in zip(traces, quota, strict=True)):
        q = values_of(observations)
        best = q.mean(1).argmax(-1)
        explore = rng.random(len(best)) < epsilon
        actions = np.where(explore, rng.integers(0, lanes.n_actions, len(best)), best)
        taken = step_lanes(lanes, actions, step)
        of_taken = q[every_lane, :, actions]
        agreements = (q.argmax(-1) == best[:, None]).mean(1)
        columns = (taken.rewards, of_taken.mean(1), of_taken.std(1), agreements)
        for lane, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if not taken.valid[lane]:
                continue
            notes[lane].rows.append(row)
            if taken.terminated[lane] or taken.truncated[lane]:
                traces[lane].append(notes[lane].close(terminated=bool(taken.terminated[lane])))
        observations, step = taken.observations, step + 1
    return [trace for done, wanted in zip(traces, quota, strict=True) for trace in done[:wanted]]
