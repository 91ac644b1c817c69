"""The map of estimators: bias, variance and error of every rule against gap, spread, arms and samples.

One of m Gaussian arms is better than the others by `gap`. Each arm has N samples, which K members share
equally. Rules with a closed form or an integral are exact; the others are simulated, with 95% intervals.
Ensemble Q-learning, Averaged Q-learning and MeanQ are the single estimator here: the mean of all members is
the mean of all samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ebql.estimators import (
    Interval,
    Simulated,
    by_rule,
    ensemble_moments,
    exact_moments,
    gaussian,
    order_moments,
    simulate,
    single_moments,
    two_phase_moments,
)
from ebql.estimators.moments import Moments
from ebql.paper.table import Table

Progress = Callable[[str], None]
Axis = Literal["gap", "spread", "arms", "samples"]

REPLICATIONS = 20_000


class World(NamedTuple):
    """One arm is better by `gap`; `spread` is the standard deviation of a sample; N `samples` of each arm."""

    gap: float = 0.2
    spread: float = 1.0
    arms: int = 8
    samples: int = 120

    @property
    def means(self) -> list[float]:
        """The means of the arms; the largest is 0."""
        return [0.0] + [-self.gap] * (self.arms - 1)

    @property
    def error(self) -> float:
        """The standard error of the mean of all samples of an arm."""
        return float(self.spread / np.sqrt(self.samples))


# N is a multiple of every number of members, so that all members have equally many samples.
GRID: dict[Axis, tuple[float, ...]] = {
    "gap": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
    "spread": (0.25, 0.5, 1.0, 2.0, 4.0),
    "arms": (2, 4, 8, 16, 32),
    "samples": (60, 120, 240, 480, 960),
}


@dataclass(frozen=True)
class Method:
    """A rule with its parameters, and its exact moments where they are known."""

    label: str
    rule: str
    members: int
    parameter: float | None = None
    exact: Callable[[World], Moments] | None = None


def _order(members: int, index: int, of: int) -> Callable[[World], Moments]:
    """Return the exact moments of the `index`-th smallest of `members`, each with N / `of` samples."""
    return lambda world: order_moments(world.means, world.error * np.sqrt(of), members, index)


def _cross(world: World) -> Moments:
    error = world.error * np.sqrt(10)
    return two_phase_moments(world.means, error, error)


def _robust(world: World) -> Moments:
    moments = single_moments(world.means, world.spread, world.samples)
    bias = moments.bias - np.sqrt(RHO)
    return moments._replace(bias=bias, mse=moments.variance + bias**2)


RHO = 0.01
METHODS: tuple[Method, ...] = (
    Method(
        "single (Q-learning)", "q-learning", 1, exact=lambda w: single_moments(w.means, w.spread, w.samples)
    ),
    Method("REDQ, 2 of 10", "subset-minimum", 10, 2, exact=_order(2, 1, 10)),
    Method("order 3 of 4", "order", 4, 3, exact=_order(4, 3, 4)),
    Method("order 2 of 4", "order", 4, 2, exact=_order(4, 2, 4)),
    Method("adaptive order 10", "adaptive-order", 10),
    Method("Maxmin 4", "maxmin", 4, exact=_order(4, 1, 4)),
    Method("2RA, ρ = 0.01", "robust-mean", 10, RHO, exact=_robust),
    Method("smoothed, τ = 0.1", "smoothed", 1, 0.1),
    Method("weighted", "weighted", 10),
    Method("T-estimator, α = 0.05", "t-estimator", 10, 0.05),
    Method("K-estimator", "k-estimator", 10, 1.0),
    Method("weighted double, c = 1", "weighted-double", 2, 1.0),
    Method("candidates 2", "candidates", 2, 2),
    Method("clipped double", "clipped-double", 2),
    Method(
        "double", "ensemble-bootstrap", 2, exact=lambda w: ensemble_moments(w.means, w.spread, w.samples, 2)
    ),
    Method(
        "EBQL 10",
        "ensemble-bootstrap",
        10,
        exact=lambda w: ensemble_moments(w.means, w.spread, w.samples, 10),
    ),
    Method(
        "EBQL 10, split 3",
        "split",
        10,
        3,
        exact=lambda w: exact_moments(w.means, w.spread, w.samples, 3 * w.samples // 10),
    ),
    Method("cross 10", "cross", 10, exact=_cross),
)


@dataclass(frozen=True)
class EstimatorPoint:
    """The errors of one method in one world; intervals have no width where they are exact."""

    axis: Axis
    world: World
    method: Method
    bias: Interval
    variance: Interval
    mse: Interval


def worlds() -> list[tuple[Axis, World]]:
    """Return the worlds of the map: each axis varies alone, around the same world."""
    kept = []
    for axis, values in GRID.items():
        for value in values:
            changed = {axis: int(value) if axis in ("arms", "samples") else value}
            kept.append((axis, World()._replace(**changed)))  # type: ignore[arg-type]
    return kept


def run_estimators(
    progress: Progress, *, replications: int = REPLICATIONS, seed: int = 0
) -> list[EstimatorPoint]:
    """Return the errors of all methods in all worlds of the map; call `progress` after each method."""
    points = []
    for method in METHODS:
        for axis, world in worlds():
            errors = errors_of(method, world, replications=replications, seed=seed)
            points.append(EstimatorPoint(axis, world, method, *errors))
        progress(f"{method.label} · map of estimators")
    return points


def errors_of(
    method: Method, world: World, *, replications: int, seed: int, simulated: bool = False
) -> Simulated:
    """Return the errors of a method in a world: the exact ones if they are known, unless `simulated`."""
    if method.exact is not None and not simulated:
        moments = method.exact(world)
        exact = (float(value) for value in (moments.bias, moments.variance, moments.mse))
        return Simulated(*(Interval(value, value, value) for value in exact))
    # A member's mean of N / K samples is drawn at once.
    members = gaussian(world.means, world.error * np.sqrt(method.members))
    return simulate(
        members,
        method.members,
        lambda samples: by_rule(samples, method.rule, method.members, method.parameter),
        replications=replications,
        seed=seed,
    )


def estimators_table(points: Sequence[EstimatorPoint]) -> Table:
    """Return one row for each method and world, with the ends of the intervals."""
    columns = ["axis", "gap", "spread", "arms", "samples", "method", "members", "how"]
    columns += [f"{name}{end}" for name in ("bias", "variance", "mse") for end in ("", "_low", "_high")]
    rows = []
    for point in points:
        how = "simulated" if point.method.exact is None else "exact"
        numbers = [number for interval in (point.bias, point.variance, point.mse) for number in interval]
        rows.append((point.axis, *point.world, point.method.label, point.method.members, how, *numbers))
    return Table(tuple(columns), tuple(rows))


def dominated(points: Sequence[EstimatorPoint]) -> dict[str, int]:
    """Return in how many worlds each method is dominated, by label.

    A method is dominated in a world if some other one has a smaller |bias| and a smaller MSE there, and the
    intervals of both do not touch.
    """
    counts = {point.method.label: 0 for point in points}
    by_world: dict[World, dict[str, EstimatorPoint]] = {}
    for point in points:
        by_world.setdefault(point.world, {})[point.method.label] = point
    for rivals in by_world.values():
        for label, mine in rivals.items():
            counts[label] += any(_dominates(other, mine) for other in rivals.values())
    return counts


def n_worlds() -> int:
    """Return how many different worlds the map has; the axes share one."""
    return len({world for _, world in worlds()})


def _dominates(other: EstimatorPoint, mine: EstimatorPoint) -> bool:
    return _size(other.bias)[1] < _size(mine.bias)[0] and other.mse.high < mine.mse.low


def _size(bias: Interval) -> tuple[float, float]:
    """Return the smallest and the largest |bias| of an interval."""
    ends = abs(bias.low), abs(bias.high)
    return (0.0 if bias.low <= 0 <= bias.high and bias.low < bias.high else min(ends)), max(ends)
