"""Figures of a study's findings. Nothing here writes files."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from ebql.analysis.findings import AGGREGATES, Findings
from ebql.analysis.references import HUMAN
from ebql.analysis.scores import ScoredStudy
from ebql.analysis.statistics import Interval, Scores
from ebql.report.curves import legend_below, markers, panel_grid, tidy
from ebql.report.palette import colours
from ebql.report.study.words import signed

_WIDEST_LINEAR = 4.0  # a normalised score this far from 0 would squeeze all others together
_LONGEST_LEVEL_NAME = 14  # characters; longer names above the matrix are tilted


def summary(study: ScoredStudy, findings: Findings) -> Figure:
    """Draw the agents' IQM, the best on top, and beside it their bias."""
    order = list(reversed(findings.ranking))
    panels = 2 if findings.bias else 1
    figure = Figure(figsize=(5.3 * panels, 0.42 * len(order) + 1.2), layout="constrained")
    left, *right = figure.subplots(1, panels, squeeze=False)[0]
    _dots(left, order, {agent: findings.aggregates[agent]["IQM"] for agent in order}, study.agents)
    left.set(xlabel=f"IQM of the {_scale_name(study)}, higher is better")
    for axes in right:
        _dots(axes, order, findings.bias, study.agents)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set(xlabel=f"{study.bias_scale.axis}, closer to 0 is better", yticklabels=[])
    return figure


def each_run(study: ScoredStudy, findings: Findings) -> Figure:
    """Draw the score and the bias of each run, and the means, for too few seeds for intervals.

    Agents are in the order of the study: so few runs do not rank them.
    """
    order = list(reversed(study.contenders))
    panels = 2 if findings.bias else 1
    figure = Figure(figsize=(5.3 * panels, 0.42 * len(order) + 1.2), layout="constrained")
    left, *right = figure.subplots(1, panels, squeeze=False)[0]
    means = {agent: findings.aggregates[agent]["mean"].value for agent in order}
    _seed_dots(left, order, {agent: study.scores(agent) for agent in order}, means, study.agents)
    left.set(xlabel=f"{_scale_name(study)} of each run, higher is better")
    if max(np.abs(own).max() for agent in order for own in study.scores(agent)) > _WIDEST_LINEAR:
        left.set_xscale("symlog", linthresh=1)
        left.xaxis.set_major_formatter(ScalarFormatter())
    for axes in right:
        biases = {agent: study.comparable_biases(agent) for agent in findings.bias}
        means = {agent: value.value for agent, value in findings.bias.items()}
        _seed_dots(axes, order, biases, means, study.agents)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set(xlabel=f"{study.bias_scale.axis}, closer to 0 is better", yticklabels=[])
    return figure


def aggregates(study: ScoredStudy, findings: Findings) -> Figure:
    """Draw every aggregate score of every agent with its interval."""
    order = list(reversed(findings.ranking))
    figure = Figure(figsize=(10.8, 0.36 * len(order) + 1.1), layout="constrained")
    panels = figure.subplots(1, len(AGGREGATES), sharey=True)
    for axes, name in zip(panels, AGGREGATES, strict=True):
        _dots(axes, order, {agent: findings.aggregates[agent][name] for agent in order}, study.agents)
        better = "lower is better" if name == "optimality gap" else "higher is better"
        axes.set_title(f"{name} ({better})", fontsize=10)
    return figure


def profiles(study: ScoredStudy, findings: Findings) -> Figure:
    """Draw the share of runs that score more than each threshold."""
    palette, signs = colours(study.agents), markers(study.agents)
    figure = Figure(figsize=(7.2, 3.9), layout="constrained")
    axes = figure.subplots()
    for agent, profile in findings.profiles.items():
        (line,) = axes.plot(
            profile.thresholds, profile.share, color=palette[agent], linewidth=1.8, label=agent
        )
        line.set(marker=signs[agent], markevery=0.12, markersize=5)
        axes.fill_between(
            profile.thresholds, profile.low, profile.high, color=palette[agent], alpha=0.13, linewidth=0
        )
    axes.set(
        xlabel=f"{_scale_name(study)} τ", ylabel="share of runs that score more than τ", ylim=(-0.02, 1.02)
    )
    tidy(axes)
    axes.legend(fontsize=9)
    return figure


def improvement(findings: Findings) -> Figure:
    """Draw a matrix of the probabilities that a run of the row's agent beats one of the column's."""
    agents = findings.ranking
    grid = np.array([[findings.improvement[a, b].value if a != b else 0.5 for b in agents] for a in agents])
    side = 1.25 * len(agents)
    figure = Figure(figsize=(max(4.5, side + 2.2), max(2.2, 0.62 * len(agents) + 1.3)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(grid, cmap="PuOr_r", norm=TwoSlopeNorm(0.5, vmin=0, vmax=1), aspect="auto")
    for row, a in enumerate(agents):
        for column, b in enumerate(agents):
            if a != b:
                cell = findings.improvement[a, b]
                axes.text(
                    column,
                    row,
                    f"{cell.value:.2f}\n{_range(cell)}",
                    ha="center",
                    va="center",
                    fontsize=8.5,
                    fontweight="bold" if cell.excludes(0.5) else "normal",
                    color="white" if abs(cell.value - 0.5) > 0.33 else "black",
                )
    crowded = max(map(len, agents)) > _LONGEST_LEVEL_NAME
    tilt, ha = (25, "left") if crowded else (0, "center")
    axes.set_xticks(range(len(agents)), agents, fontsize=9, rotation=tilt, ha=ha)
    axes.set_yticks(range(len(agents)), agents, fontsize=9)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label="P(row beats column)")
    return figure


def bias_against_score(study: ScoredStudy, findings: Findings) -> Figure:
    """Draw every run's last score against the bias before it, in a panel for each environment.

    With enough seeds, each panel has its rank correlation: four runs often have ±1 by chance.
    """
    assert findings.bias_and_score is not None
    palette, signs = colours(study.agents), markers(study.agents)
    figure, panels = panel_grid(len(findings.correlated))
    correlations = findings.bias_and_score.within
    for axes, environment, rho in zip(panels, findings.correlated, correlations, strict=True):
        for agent in study.agents:
            runs = study.scored_runs(environment, agent)
            xs, ys = [run.bias_before for run in runs], [run.last_score for run in runs]
            axes.plot(xs, ys, signs[agent], color=palette[agent], markersize=6, alpha=0.8, label=agent)
        axes.axvline(0, color="black", linewidth=0.8)
        correlation = (
            "" if study.has_few_seeds else f", ρ = {signed(rho)}" if np.isfinite(rho) else ", ρ unknown"
        )
        axes.set_title(f"{environment}{correlation}", loc="left", fontsize=10, fontweight="bold")
        tidy(axes)
        axes.set(xlabel="bias one evaluation earlier")
    figure.supylabel("score at the last evaluation", fontsize=10)
    legend_below(figure, panels)
    return figure


def _scale_name(study: ScoredStudy) -> str:
    """Return what the scale of scores is called."""
    by_human = all(scale is not None and scale.one_is == HUMAN for scale in study.references.values())
    return f"{'human-' if by_human else ''}normalised score"


def _dots(axes: Axes, order: Sequence[str], values: Mapping[str, Interval], agents: Sequence[str]) -> None:
    """Draw a value and its interval for each agent, from the bottom up."""
    palette, signs = colours(agents), markers(agents)
    for place, agent in enumerate(order):
        if agent not in values:
            continue
        value = values[agent]
        colour = palette[agent]
        if value.known:
            # Other caps would make a line this thick visibly longer than the interval.
            ends = [value.low, value.high]
            axes.plot(ends, [place] * 2, color=colour, linewidth=7, alpha=0.3, solid_capstyle="butt")
        axes.plot(value.value, place, signs[agent], color=colour, markersize=8)
        axes.annotate(
            f"{value.value:.2f}".replace("-", "−"),
            (value.value, place),
            (0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            # The line at 0 must not strike through a number beside it.
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.6},
        )
    _rows(axes, order)


def _seed_dots(
    axes: Axes,
    order: Sequence[str],
    values: Mapping[str, Scores],
    means: Mapping[str, float],
    agents: Sequence[str],
) -> None:
    """Draw a marker for each run of each agent and a vertical bar at the mean, from the bottom up."""
    palette, signs = colours(agents), markers(agents)
    for place, agent in enumerate(order):
        if agent not in values:
            continue
        own = np.concatenate(values[agent])
        axes.plot(own, np.full(len(own), place), signs[agent], color=palette[agent], markersize=7, alpha=0.6)
        axes.plot(means[agent], place, "|", color=palette[agent], markersize=20, markeredgewidth=2)
    _rows(axes, order)


def _rows(axes: Axes, order: Sequence[str]) -> None:
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(-0.5, len(order) - 0.35)
    axes.margins(x=0.12)
    tidy(axes)


def _range(interval: Interval) -> str:
    return f"[{interval.low:.2f}, {interval.high:.2f}]" if interval.known else ""
