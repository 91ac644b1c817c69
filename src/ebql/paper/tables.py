"""The figures' data as rows, one table a file: what a plot, a page or a script reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ebql.paper.chains.curves import FIGURE_3_WORLDS, META_CHAIN, Courses, Margin
from ebql.paper.splits.curves import BestSplits, SplitCurve
from ebql.tabular import Group, Metric

Row = tuple[object, ...]


@dataclass(frozen=True)
class Table:
    """Named columns and rows. `interval` is always the half-width of a 95% interval."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def figure_1_table(curves: Iterable[SplitCurve]) -> Table:
    """One row for each simulated split of each gap."""
    return Table(
        ("delta", "n_index", "mse_exact", "mse_simulated", "interval"),
        tuple(
            (curve.gap, int(n), float(curve.mse[n - 1]), float(simulated), float(half))
            for curve in curves
            for n, simulated, half in zip(
                curve.simulated_n_index, curve.simulated_mse, curve.simulated_half_width, strict=True
            )
        ),
    )


def figure_2_table(results: Iterable[BestSplits]) -> Table:
    """One row for each gap of each number of arms."""
    return Table(
        ("arms", "normalized_gap", "n_index", "ensemble_size"),
        tuple(
            (result.arms, float(gap), int(n_index), int(size))
            for result in results
            for gap, n_index, size in zip(
                result.normalized_gap, result.n_index, result.ensemble_size, strict=True
            )
        ),
    )


CURVE_COLUMNS = ("regime", "chain", "agent", "ensemble_size", "episode", "value", "interval")


def figure_3_table(courses: Courses) -> Table:
    """Greedy correct-action rate over time; `chain` is one of the three worlds."""
    return Table(
        CURVE_COLUMNS,
        tuple(
            row
            for world in FIGURE_3_WORLDS
            for row in _curves(courses, world, Metric.GREEDY_CORRECT, Group.ALL, world)
        ),
    )


def figure_5_table(courses: Courses) -> Table:
    """Bias of the optimal action on the Meta-Chain over time; `chain` is all, positive or negative means."""
    return Table(
        CURVE_COLUMNS,
        tuple(
            row
            for group in Group
            for row in _curves(courses, META_CHAIN, Metric.BIAS_OPTIMAL, group, group.value)
        ),
    )


def bias_table(courses: Courses) -> Table:
    """Every bias on the Meta-Chain over time, by metric and group of chains: all panels of figure 5."""
    return Table(
        ("metric", *CURVE_COLUMNS),
        tuple(
            (metric.value, *row)
            for metric in (Metric.BIAS_OPTIMAL, Metric.BIAS_RISKY, Metric.BIAS_MAX)
            for group in Group
            for row in _curves(courses, META_CHAIN, metric, group, group.value)
        ),
    )


def final_table(courses: Courses) -> Table:
    """Every metric of every course: averaged over the run, and after its last episode."""
    rows = []
    for course in courses.all:
        for metric, group in course.metrics:
            curve = course.curve(metric, group)
            rows.append(
                (
                    course.regime.name,
                    course.world,
                    group.value,
                    course.agent.label,
                    course.agent.ensemble_size,
                    metric.value,
                    float(course.average(metric, group).mean()),
                    float(curve.mean[-1]),
                    float(curve.half_width[-1]),
                )
            )
    return Table(
        (
            "regime",
            "chain",
            "group",
            "agent",
            "ensemble_size",
            "metric",
            "average",
            "final",
            "interval",
        ),
        tuple(rows),
    )


def regime_table(margins: Iterable[Margin]) -> Table:
    """The regime map: how far each ensemble lies above the better of Q-learning and double Q-learning."""
    return Table(
        ("regime", "agent", "ensemble_size", "metric", "rate", "margin", "interval", "rival"),
        tuple(
            (
                m.regime.name,
                m.agent.label,
                m.agent.ensemble_size,
                m.metric.value,
                m.rate,
                m.margin,
                m.half_width,
                m.rival,
            )
            for m in margins
        ),
    )


def _curves(courses: Courses, world: str, metric: Metric, group: Group, label: str) -> Iterator[Row]:
    for course in courses.all:
        if course.world != world:
            continue
        curve = course.curve(metric, group)
        for episode, value, half in zip(course.episodes, curve.mean, curve.half_width, strict=True):
            yield (
                course.regime.name,
                label,
                course.agent.label,
                course.agent.ensemble_size,
                int(episode),
                float(value),
                float(half),
            )
