"""Return and bias of agents over steps: figures and tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from ebql.analysis.runs import Band, LearningCurve, RunGroup, over_available_seeds
from ebql.environments.atari.games import is_atari
from ebql.estimators.intervals import FEWEST_SEEDS, interval_ends
from ebql.paper.atari.scores import FRAMES_PER_STEP
from ebql.report.palette import colours
from ebql.runs.metric_names import BIAS_AGREEMENT, BIAS_MEAN, BIAS_SPREAD, EVALUATION_RETURN

TITLES = {
    EVALUATION_RETURN: "return in evaluations",
    BIAS_MEAN: "bias, Q̂ − discounted return",
    BIAS_SPREAD: "members' spread, standard deviation of Q̂",
    BIAS_AGREEMENT: "members' agreement on the greedy action",
}
HEADER = ("environment", "agent", "metric", "step", "seeds", "mean", "low", "high")
RUN_HEADER = ("environment", "agent", "seed", "step", "return", "bias")

_MARKERS = "osD^vPX*<>"
_MOST_MARKERS = 12  # per curve


def markers(labels: Sequence[str]) -> dict[str, str]:
    """Return a marker for each label."""
    return {label: _MARKERS[i % len(_MARKERS)] for i, label in enumerate(labels)}


def learning_curves(
    groups: Sequence[RunGroup], metrics: Sequence[str] = (EVALUATION_RETURN, BIAS_MEAN)
) -> Figure:
    """Draw means over seeds with 95% bands: a row for each environment, a panel for each metric.

    If an agent has too few seeds for a band, each seed is drawn as a thin line instead.
    """
    labels = list(dict.fromkeys(group.label for group in groups))
    environments = list(dict.fromkeys(group.environment for group in groups))
    size = (5.2 * len(metrics), 3.3 * len(environments) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(environments), len(metrics), squeeze=False)
    for row, environment in zip(panels, environments, strict=True):
        own = [group for group in groups if group.environment == environment]
        for axes, metric in zip(row, metrics, strict=True):
            _panel(axes, own, metric, labels)
            axes.set_xlabel(_unit(environment, own[0].unit))
        row[0].set_title(f"{environment}, {_seeds(own)}", loc="left", fontsize=11, fontweight="bold")
    figure.align_ylabels()
    legend_below(figure, panels.flat)
    return figure


def _unit(environment: str, unit: str) -> str:
    """Return the unit of the steps; for Atari games, where papers count frames, with the frames per step."""
    return f"{unit} (of {FRAMES_PER_STEP} frames)" if is_atari(environment) else unit


def metric_curves(groups: Sequence[RunGroup], metric: str, agents: Sequence[str] | None = None) -> Figure:
    """Draw one metric like `learning_curves`, with a panel for each environment.

    With the `agents` of all pictures of a study, an agent has the same colour and marker in each.
    """
    labels = list(dict.fromkeys(group.label for group in groups)) if agents is None else agents
    environments = list(dict.fromkeys(group.environment for group in groups))
    figure, panels = panel_grid(len(environments))
    for axes, environment in zip(panels, environments, strict=True):
        own = [group for group in groups if group.environment == environment]
        _panel(axes, own, metric, labels)
        axes.set_title(f"{environment}, {_seeds(own)}", loc="left", fontsize=10, fontweight="bold")
        axes.set(xlabel=_unit(environment, own[0].unit), ylabel="")
    figure.supylabel(TITLES.get(metric, metric), fontsize=10)
    legend_below(figure, panels)
    return figure


def panel_grid(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels, three in a row, and its panels."""
    columns = min(3, count)
    rows = -(-count // columns)
    width = 3.6 * columns if columns > 1 else 6.2
    figure = Figure(figsize=(width, 2.7 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in panels[count:]:
        unused.remove()
    return figure, panels[:count]


def curve_table(
    groups: Sequence[RunGroup], metrics: Sequence[str] = (EVALUATION_RETURN, BIAS_MEAN)
) -> Iterator[tuple[str | int | float | None, ...]]:
    """Yield the data of the figure as rows under `HEADER`; without intervals if there are too few seeds."""
    for group in groups:
        for metric in metrics:
            band = over_available_seeds(group.curve(metric))
            for step, seeds, mean, half in zip(*(column.tolist() for column in band), strict=True):
                numbers = step, seeds, mean, *interval_ends(mean, half)
                yield group.environment, group.label, metric, *numbers


def run_table(
    groups: Sequence[RunGroup], metrics: Sequence[str] = (EVALUATION_RETURN, BIAS_MEAN)
) -> Iterator[tuple[str | int | float | None, ...]]:
    """Yield the last evaluation of each run as a row under `RUN_HEADER`."""
    for group in groups:
        for run in group.runs:
            last = next(record for record in reversed(run.records) if EVALUATION_RETURN in record)
            measured = [last.get(metric) for metric in metrics]
            yield group.environment, group.label, run.seed, last["step"], *measured


def _seeds(groups: Sequence[RunGroup]) -> str:
    counts = sorted({len(group.seeds) for group in groups})
    return (
        "1 seed" if counts == [1] else f"{'–'.join(map(str, dict.fromkeys(counts[:1] + counts[-1:])))} seeds"
    )


def _panel(axes: Axes, groups: Sequence[RunGroup], metric: str, labels: Sequence[str]) -> None:
    palette, marks = colours(labels), markers(labels)
    curves = [group.curve(metric) for group in groups]
    bands = [over_available_seeds(curve) for curve in curves]
    few = min(len(group.seeds) for group in groups) < FEWEST_SEEDS
    if few:
        # A band for one agent and thin lines for another would suggest a comparison.
        bands = [band._replace(half_width=np.full_like(band.mean, np.inf)) for band in bands]
    for group, band in zip(groups, bands, strict=True):
        label = group.label
        _draw(axes, band, len(group.seeds), label, palette[label], marks[label])
        _shade(axes, band, palette[label], opacity=min(0.12, 0.6 / len(groups)))  # fainter if many overlap
    if few:
        _draw_seeds(axes, curves, [palette[group.label] for group in groups])
    axes.set_ylabel(TITLES.get(metric, metric))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    tidy(axes)
    if metric == BIAS_MEAN:
        axes.axhline(0, color="black", linewidth=0.8)
    measured = np.concatenate([curve.values.ravel() for curve in curves])
    if not np.isnan(measured).all():
        # With few seeds the band can be much wider than the values: limit the axis to the values.
        drawn = [band for band in bands if band.mean.size]
        low = max(np.nanmin(measured), min((band.mean - band.half_width).min() for band in drawn))
        high = min(np.nanmax(measured), max((band.mean + band.half_width).max() for band in drawn))
        margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        axes.set_ylim(low - margin, high + margin)


def _draw_seeds(axes: Axes, curves: Sequence[LearningCurve], colours_of_groups: Sequence[str]) -> None:
    """Draw a thin line behind the mean for each seed of groups with several seeds."""
    style: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.6, "zorder": 1.5}
    drawn = False
    for curve, colour in zip(curves, colours_of_groups, strict=True):
        for values in curve.values if len(curve.values) > 1 else ():
            known = np.isfinite(values)
            axes.plot(curve.steps[known], values[known], color=colour, **style)
            drawn = True
    if drawn:
        axes.plot([], [], color="grey", label="one seed", **style)


def _draw(axes: Axes, band: Band, n_seeds: int, label: str, colour: str, marker: str) -> None:
    # Where some seeds have not arrived, the mean is over fewer runs than before: draw it dotted.
    complete = np.where(band.seeds == n_seeds, band.mean, np.nan)
    # Count back from the last point, so that it has a marker, and a single point is visible.
    spacing = max(-(-len(band.steps) // _MOST_MARKERS), 1)
    axes.plot(band.steps, band.mean, color=colour, linewidth=1.2, linestyle=":")
    axes.plot(
        band.steps,
        complete,
        color=colour,
        linewidth=1.8,
        label=label,
        marker=marker,
        markersize=4,
        markevery=((len(band.steps) - 1) % spacing, spacing),
    )


def _shade(axes: Axes, band: Band, colour: str, opacity: float) -> None:
    known = np.isfinite(band.half_width)
    steps, mean, half = band.steps[known], band.mean[known], band.half_width[known]
    axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=opacity, linewidth=0)


def legend_below(figure: Figure, panels: Iterable[Axes]) -> None:
    """Put one legend for all panels below them, with each label once."""
    handles: dict[str, Artist] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=9)


def tidy(axes: Axes) -> None:
    """Remove the top and right spines, and draw a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
