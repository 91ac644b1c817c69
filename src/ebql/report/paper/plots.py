"""The paper's figures as matplotlib figures, drawn from the experiments' data. Nothing here writes files."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ebql.analysis.statistics import Floats
from ebql.paper.chains.curves import (
    AGENTS,
    DQL,
    ENSEMBLES,
    FIGURE_3_WORLDS,
    META_CHAIN,
    NEGATIVE_CHAIN,
    POSITIVE_CHAIN,
    QL,
    Courses,
    Margin,
    Regime,
)
from ebql.paper.splits.curves import SAMPLES, BestSplits, SplitCurve
from ebql.report.curves import tidy
from ebql.tabular import Agent, Group, Metric

# Q-learning warm, double Q-learning cool, ensembles from light to dark with their size.
COLOURS = {QL.label: "#d1495b", DQL.label: "#2e6fba"} | {
    agent.label: colormaps["summer_r"](0.25 + 0.75 * index / (len(ENSEMBLES) - 1))
    for index, agent in enumerate(ENSEMBLES)
}


def figure_1(curves: Sequence[SplitCurve]) -> Figure:
    """MSE against the split ratio for several gaps, stars at the minima, dots simulated."""
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["viridis"](np.linspace(0, 0.92, len(curves)))
    for curve, colour in zip(curves, colours, strict=True):
        axes.plot(curve.n_index / SAMPLES, curve.mse, color=colour, label=f"Δ = {curve.gap:g}")
        axes.errorbar(
            curve.simulated_n_index / SAMPLES,
            curve.simulated_mse,
            curve.simulated_half_width,
            fmt=".",
            color=colour,
            markersize=4,
            linewidth=1,
            alpha=0.7,
        )
        best = curve.best
        axes.plot(best / SAMPLES, curve.mse[best - 1], "*", color=colour, markersize=15, mec="black", mew=0.6)
    axes.axvline(0.5, color="grey", linestyle=":", linewidth=1)
    axes.text(
        0.505, 0.97, "even split (double)", transform=axes.get_xaxis_transform(), va="top", color="grey"
    )
    axes.set(yscale="log", xlabel="share of samples that select, N₁ / N", ylabel="mean squared error")
    axes.set_title("Lines exact, dots simulated with 95% intervals, stars the best split", fontsize=10)
    axes.legend(ncols=2, fontsize=8)
    tidy(axes)
    return figure


def figure_2(results: Sequence[BestSplits]) -> Figure:
    """The best split against the normalised gap for each number of arms."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for result, colour in zip(results, ("#2e6fba", "#e07b39", "#3a7d44"), strict=False):
        axes.step(
            result.normalized_gap,
            result.n_index / SAMPLES,
            where="mid",
            color=colour,
            label=f"{result.arms} arms",
        )
    axes.axhline(0.5, color="grey", linestyle=":", linewidth=1)
    axes.text(0.012, 0.505, "even split (double)", color="grey", va="bottom")
    axes.set(xscale="log", ylim=(0, 0.56))
    axes.set(xlabel="normalised gap Δ / (σ √m)", ylabel="best share of selecting samples, N₁* / N")
    axes.legend(loc="upper right")
    tidy(axes)
    return figure


PANEL_TITLES = {
    NEGATIVE_CHAIN: "(a) one chain, mean −0.2: risk costs",
    POSITIVE_CHAIN: "(b) one chain, mean +0.2: risk pays",
    META_CHAIN: "(c) the Meta-Chain, six means",
}


def figure_3(courses: Courses, regime: Regime) -> Figure:
    """Correct-action rate over episodes in one regime, a panel for each world, with 95% bands."""
    figure = Figure(figsize=(12, 3.9), layout="constrained")
    panels = figure.subplots(1, len(FIGURE_3_WORLDS), sharey=True)
    for axes, world in zip(panels, FIGURE_3_WORLDS, strict=True):
        for agent in AGENTS:
            _band(axes, courses, regime, world, agent, Metric.GREEDY_CORRECT, Group.ALL)
        axes.set(title=PANEL_TITLES[world], xlabel="episode", ylim=(-0.02, 1.02))
        tidy(axes)
    panels[0].set_ylabel("greedy correct-action rate")
    _legend_below(figure, panels[0])
    figure.suptitle(regime.name, fontsize=12)
    return figure


BIAS_PANELS = (
    ("optimal action, all chains", Metric.BIAS_OPTIMAL, Group.ALL),
    ("value of the state (max over actions), all chains", Metric.BIAS_MAX, Group.ALL),
    ("risky action, chains where risk pays", Metric.BIAS_RISKY, Group.POSITIVE),
    ("risky action, chains where risk costs", Metric.BIAS_RISKY, Group.NEGATIVE),
)


def figure_5(courses: Courses, regime: Regime) -> Figure:
    """Bias over episodes in one regime on the Meta-Chain, by what it is the bias of, with 95% bands."""
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True)
    for axes, (title, metric, group) in zip(panels.flat, BIAS_PANELS, strict=True):
        for agent in AGENTS:
            _band(axes, courses, regime, META_CHAIN, agent, metric, group)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_title(title, fontsize=10)
        tidy(axes)
    for axes in panels[1]:
        axes.set_xlabel("episode")
    for axes in panels[:, 0]:
        axes.set_ylabel("bias, Q̄ − Q*")
    _legend_below(figure, panels[0, 0])
    figure.suptitle(regime.name, fontsize=12)
    return figure


def regime_map(margins: Sequence[Margin], whose: str = "EBQL") -> Figure:
    """Where an agent beats both Q-learning and double Q-learning, and by how much: a heat map."""
    regimes = list(dict.fromkeys(m.regime.name for m in margins))
    agents = list(dict.fromkeys(m.agent.label for m in margins))
    cells = {(m.regime.name, m.agent.label): m for m in margins}
    tilt = 0 if len(agents) <= len(ENSEMBLES) else 40
    size = (4.2 + 0.8 * len(agents), 0.42 * len(regimes) + (2.4 if tilt else 1.6))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    grid = np.array([[(cells[r, a].margin, cells[r, a].half_width) for a in agents] for r in regimes])
    image = margin_grid(axes, grid, fontsize=9)
    axes.set_xticks(range(len(agents)), agents, rotation=tilt, ha="right" if tilt else "center")
    rivals = {r: {cells[r, a].rival for a in agents} for r in regimes}
    names = [f"{r}   (vs {' or '.join(sorted(rivals[r], reverse=True))})" for r in regimes]
    axes.set_yticks(range(len(regimes)), names)
    axes.set_title(
        f"Correct-action rate of {whose} minus that of QL or DQL, whichever it leads less surely\n"
        "Meta-Chain, whole run; bold: the 95% interval excludes 0",
        fontsize=10,
    )
    figure.colorbar(image, ax=axes, extend="both", label="margin")
    return figure


def margin_grid(axes: Axes, grid: Floats, *, fontsize: float) -> AxesImage:
    """Draw margins with the half-widths of their intervals, `grid` (rows, columns, 2), as a heat map.

    A margin is written into its cell, in bold where its interval excludes 0.
    """
    # Centred on zero whatever the data; large losses must not wash out the small gains that matter.
    image = axes.imshow(grid[:, :, 0], cmap="RdBu", vmin=-0.1, vmax=0.1, aspect="auto")
    for row, column in np.ndindex(grid.shape[:2]):
        margin, half_width = grid[row, column]
        sure = abs(margin) > half_width
        axes.text(
            column,
            row,
            f"{margin:+.3f}",
            ha="center",
            va="center",
            fontsize=fontsize,
            fontweight="bold" if sure else "normal",
            color="white" if abs(margin) > 0.07 else ("black" if sure else "#666666"),
        )
    return image


def _band(
    axes: Axes, courses: Courses, regime: Regime, world: str, agent: Agent, metric: Metric, group: Group
) -> None:
    course = courses.get(regime, world, agent)
    curve = course.curve(metric, group)
    colour = COLOURS[agent.label]
    low, high = curve.mean - curve.half_width, curve.mean + curve.half_width
    axes.plot(course.episodes, curve.mean, color=colour, linewidth=1.4, label=agent.label)
    axes.fill_between(course.episodes, low, high, color=colour, alpha=0.15, linewidth=0)


def _legend_below(figure: Figure, axes: Axes) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=len(AGENTS), fontsize=9
    )
