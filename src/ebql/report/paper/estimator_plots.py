"""The pictures of the map of estimators. Nothing here writes files."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from ebql.paper.family.estimators import GRID, METHODS, Axis, EstimatorPoint, World, dominated, n_worlds
from ebql.report.curves import tidy

_COLOURS = colormaps["tab10"](np.arange(9))
_STYLES = {
    method.label: {
        "color": _COLOURS[number % 9],
        "linestyle": "-" if number < 9 else "--",
        "marker": "os^v"[number % 4],
    }
    for number, method in enumerate(METHODS)
}
_AXES: dict[Axis, str] = {
    "gap": "gap of the best arm",
    "spread": "standard deviation of a sample",
    "arms": "number of arms",
    "samples": "samples of each arm, N",
}
_ROWS = (("bias", "bias"), ("variance", "variance"), ("mse", "mean squared error"))


def estimators_map(points: Sequence[EstimatorPoint]) -> Figure:
    """Draw bias, variance and MSE of every method against gap, spread, arms and samples."""
    figure = Figure(figsize=(16, 11), layout="constrained")
    panels = figure.subplots(3, len(GRID), sharex="col")
    for column, (axis, values) in enumerate(GRID.items()):
        for row, (name, title) in enumerate(_ROWS):
            axes = panels[row, column]
            for method in METHODS:
                mine = [p for p in points if p.axis == axis and p.method == method]
                intervals = [getattr(point, name) for point in mine]
                middle = [interval.value for interval in intervals]
                half = [(interval.high - interval.low) / 2 for interval in intervals]
                style = _STYLES[method.label]
                axes.errorbar(values, middle, half, label=method.label, markersize=3, linewidth=1.1, **style)
            if axis != "gap":
                axes.set_xscale("log")
                axes.set_xticks(values, [f"{value:g}" for value in values])
                axes.minorticks_off()
            if name == "bias":
                axes.axhline(0, color="black", linewidth=0.8)
            else:
                axes.set_yscale("log")
            if column == 0:
                axes.set_ylabel(title)
            tidy(axes)
        panels[2, column].set_xlabel(_AXES[axis])
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=9)
    world = World()
    figure.suptitle(
        f"Estimators of the largest of m means. Where an axis does not vary: gap {world.gap:g}, standard "
        f"deviation {world.spread:g}, {world.arms} arms, N = {world.samples}. Bars: 95% intervals of "
        "simulated methods.",
        fontsize=11,
    )
    return figure


def bias_line(points: Sequence[EstimatorPoint]) -> Figure:
    """Place every method on the line from under- to overestimation: a dot for each world, with its interval.

    Biases are in standard errors of the mean of all samples of an arm. The colour is the gap in that unit.
    """
    counts, worlds = dominated(points), n_worlds()
    by_method = {m.label: list({p.world: p for p in points if p.method == m}.values()) for m in METHODS}
    average = {
        label: np.mean([p.bias.value / p.world.error for p in mine]) for label, mine in by_method.items()
    }
    ranked = sorted(average, key=lambda label: average[label])
    figure = Figure(figsize=(12, 0.42 * len(ranked) + 1.8), layout="constrained")
    axes = figure.subplots()
    for place, label in enumerate(ranked):
        mine = by_method[label]
        bias = np.array([p.bias.value / p.world.error for p in mine])
        half = np.array([(p.bias.high - p.bias.low) / 2 / p.world.error for p in mine])
        gaps = np.array([p.world.gap / p.world.error for p in mine])
        rows = place + np.linspace(-0.25, 0.25, len(mine))[np.argsort(np.argsort(gaps))]
        axes.errorbar(bias, rows, xerr=half, fmt="none", ecolor="#888888", elinewidth=0.8)
        dots = axes.scatter(bias, rows, c=np.minimum(gaps, 9), s=16, cmap="viridis", vmin=0, vmax=9, zorder=3)
        axes.plot([average[label]] * 2, [place - 0.35, place + 0.35], color="#d1495b", linewidth=2)
    names = [f"{label}  ({counts[label]} of {worlds})" for label in ranked]
    axes.set_yticks(range(len(ranked)), names, fontsize=9)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel(
        "bias, in standard errors of an arm's mean: underestimates on the left, overestimates on the right"
    )
    axes.set_title(
        "Every method on the line from under- to overestimation; red: mean over worlds. In brackets: "
        "worlds in which another\nmethod has both a smaller |bias| and a smaller mean squared error",
        fontsize=10,
    )
    tidy(axes)
    figure.colorbar(dots, ax=axes, extend="max", label="gap in standard errors")
    return figure
