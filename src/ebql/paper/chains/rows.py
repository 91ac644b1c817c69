"""The data of figures 3 and 5 and of the regime map as tables."""

from collections.abc import Iterable, Iterator

from ebql.paper.chains.curves import FIGURE_3_WORLDS, META_CHAIN, LearningCurves, Margin
from ebql.paper.table import Row, Table
from ebql.tabular import Group, Metric

CURVE_COLUMNS = ("regime", "chain", "agent", "ensemble_size", "episode", "value", "interval")


def figure_3_table(curves: LearningCurves) -> Table:
    """Return the greedy correct-action rate over episodes; `chain` is one of the three worlds."""
    return Table(
        CURVE_COLUMNS,
        tuple(
            row
            for world in FIGURE_3_WORLDS
            for row in _curve_rows(curves, world, Metric.GREEDY_CORRECT, Group.ALL, world)
        ),
    )


def figure_5_table(curves: LearningCurves) -> Table:
    """Return the bias of the optimal action on the Meta-Chain over episodes.

    `chain` is the group of chains: all, or those with a positive or a negative mean.
    """
    return Table(
        CURVE_COLUMNS,
        tuple(
            row
            for group in Group
            for row in _curve_rows(curves, META_CHAIN, Metric.BIAS_OPTIMAL, group, group.value)
        ),
    )


def bias_table(curves: LearningCurves) -> Table:
    """Return every bias on the Meta-Chain over episodes, by metric and group: all panels of figure 5."""
    return Table(
        ("metric", *CURVE_COLUMNS),
        tuple(
            (metric.value, *row)
            for metric in (Metric.BIAS_OPTIMAL, Metric.BIAS_RISKY, Metric.BIAS_MAX)
            for group in Group
            for row in _curve_rows(curves, META_CHAIN, metric, group, group.value)
        ),
    )


def summary_table(curves: LearningCurves) -> Table:
    """Return every metric of every learning curve, averaged over the run and after its last episode."""
    rows = []
    for curve in curves.all:
        for metric, group in curve.metrics:
            estimate = curve.over_seeds(metric, group)
            rows.append(
                (
                    curve.regime.name,
                    curve.world,
                    group.value,
                    curve.agent.label,
                    curve.agent.ensemble_size,
                    metric.value,
                    float(curve.average(metric, group).mean()),
                    float(estimate.mean[-1]),
                    float(estimate.half_width[-1]),
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
    """Return the regime map: the margin of each agent over Q-learning or double Q-learning."""
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


def _curve_rows(
    curves: LearningCurves, world: str, metric: Metric, group: Group, label: str
) -> Iterator[Row]:
    for curve in curves.all:
        if curve.world != world:
            continue
        mean, half_width = curve.over_seeds(metric, group)
        for episode, value, half in zip(curve.episodes, mean, half_width, strict=True):
            yield (
                curve.regime.name,
                label,
                curve.agent.label,
                curve.agent.ensemble_size,
                int(episode),
                float(value),
                float(half),
            )
