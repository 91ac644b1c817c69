"""The figures of the studies of related methods. Nothing here writes files."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ebql.paper.chains.curves import EPSILONS, META_CHAIN, LearningCurves, Regime
from ebql.paper.family.adaptive import ADAPTIVE, FIXED, SPLIT_WORLDS, SplitCell
from ebql.paper.family.exploration import COUPLED, ExplorationResult
from ebql.paper.family.maps import BANDIT_REGIMES, FAMILY, ArmsPoint, Standing, dominated
from ebql.report.curves import tidy
from ebql.report.paper.chains import margin_grid
from ebql.tabular import Group, Metric

# Eight colours in three line styles, so that all methods can be told apart.
_COLOURS = colormaps["tab10"](np.arange(8))
STYLES: dict[str, dict[str, Any]] = {
    agent.label: {
        "color": _COLOURS[number % 8],
        "linestyle": ("-", "--", ":")[number // 8],
        "marker": "os^v"[number % 4],
        "markersize": 3,
        "linewidth": 1.3,
    }
    for number, agent in enumerate(FAMILY)
}


def tables_line(rows: Sequence[Standing]) -> Figure:
    """Place every table on the line from under- to overestimation, a dot with its interval a regime."""
    counts, regimes = dominated(rows), list(dict.fromkeys(row.regime for row in rows))
    average = {agent: np.mean([row.bias for row in rows if row.agent == agent]) for agent in counts}
    ranked = sorted(average, key=lambda agent: average[agent])
    figure = Figure(figsize=(12, 0.42 * len(ranked) + 1.8), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["tab20"](np.arange(len(regimes)))
    for number, regime in enumerate(regimes):
        mine = [row for row in rows if row.regime == regime]
        places = [ranked.index(row.agent) + 0.5 * number / len(regimes) - 0.25 for row in mine]
        axes.errorbar(
            [row.bias for row in mine],
            places,
            xerr=[row.bias_half_width for row in mine],
            fmt="o",
            markersize=4,
            color=colours[number],
            label=regime,
        )
    for place, agent in enumerate(ranked):
        axes.plot([average[agent]] * 2, [place - 0.35, place + 0.35], color="#d1495b", linewidth=2)
    names = [f"{agent}  ({counts[agent]} of {len(regimes)})" for agent in ranked]
    axes.set_yticks(range(len(ranked)), names, fontsize=9)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("final bias of a state's value on the Meta-Chain: under- on the left, over- on the right")
    axes.set_title(
        "Tables on the line from under- to overestimation; red: mean over regimes. In brackets: regimes in "
        "which another\nmethod chooses better and has a smaller |bias|",
        fontsize=10,
    )
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(axes)
    return figure


def bias_over_time(curves: LearningCurves, regimes: Sequence[Regime]) -> Figure:
    """Draw the bias of the state's value on the Meta-Chain over episodes, a panel for each regime."""
    figure = Figure(figsize=(12, 8.2), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, regime in zip(panels.flat, regimes, strict=True):
        for agent in FAMILY:
            curve = curves.get(regime, META_CHAIN, agent)
            bias = curve.over_seeds(Metric.BIAS_MAX, Group.ALL)
            axes.plot(curve.episodes, bias.mean, label=agent.label, **STYLES[agent.label])
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_title(regime.name, fontsize=10)
        tidy(axes)
    for axes in panels[1]:
        axes.set_xlabel("episode")
    for axes in panels[:, 0]:
        axes.set_ylabel("bias of the state's value, max Q̄ − max Q*")
    _legend(figure, panels[0, 0])
    figure.suptitle(
        "The family on the Meta-Chain: overestimates above zero, underestimates below", fontsize=12
    )
    return figure


def arms_figure(points: Sequence[ArmsPoint], std: float) -> Figure:
    """Draw the final bias against the number of arms, a panel for each regime."""
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    panels = figure.subplots(1, len(BANDIT_REGIMES), sharey=True)
    for axes, regime in zip(panels, BANDIT_REGIMES, strict=True):
        for agent in FAMILY:
            mine = [p for p in points if p.agent == agent and p.regime == regime]
            arms, bias = [p.arms for p in mine], [p.bias for p in mine]
            half = [p.half_width for p in mine]
            axes.errorbar(arms, bias, half, label=agent.label, elinewidth=0.8, **STYLES[agent.label])
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set(xscale="log", xlabel="number of arms", title=regime.name)
        axes.set_xticks(arms, [str(number) for number in arms])
        axes.minorticks_off()
        tidy(axes)
    panels[0].set_ylabel(f"final bias; every arm is worth 0, std {std:g}")
    _legend(figure, panels[0])
    return figure


def splits_figure(cells: Sequence[SplitCell]) -> Figure:
    """Draw the lead of the adaptive split over each fixed one, a heat map for each world."""
    regimes = list(dict.fromkeys(c.regime.name for c in cells))
    layout = ConstrainedLayoutEngine(wspace=0.16)
    figure = Figure(figsize=(13, 0.4 * len(regimes) + 2), layout=layout)
    panels = figure.subplots(1, len(SPLIT_WORLDS), sharey=True)
    for axes, world in zip(panels, SPLIT_WORLDS, strict=True):
        by_key = {(c.regime.name, c.agent.label): c for c in cells if c.world == world}
        rows = [[by_key[regime, agent.label] for agent in FIXED] for regime in regimes]
        grid = np.array([[(cell.rate_margin, cell.rate_half_width) for cell in row] for row in rows])
        image = margin_grid(axes, grid, fontsize=8)
        axes.set_xticks(range(len(FIXED)), [str(n + 1) for n in range(len(FIXED))])
        axes.set(title=world, xlabel=f"members of {ADAPTIVE.ensemble_size} that always select")
        axes.set_yticks(range(len(regimes)), regimes)
        for row, regime in enumerate(regimes):
            chosen = f"chose {by_key[regime, ADAPTIVE.label].mean_split:.2f}"
            axes.text(len(FIXED) - 0.45, row, chosen, va="center", fontsize=8, clip_on=False)
    figure.suptitle(
        "Correct-action rate of the adaptive split minus a fixed one's; bold: the 95% interval excludes 0",
        fontsize=10,
    )
    figure.colorbar(image, ax=panels, extend="both", label="margin", pad=0.09)
    return figure


def exploration_figure(results: Sequence[ExplorationResult]) -> Figure:
    """Draw the rate, the return and the spread of coupled and uncoupled members for each behaviour."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    panels = figure.subplots(1, 3)
    behaviours = list(dict.fromkeys(f"{e.acting_rule}, ε {e.epsilon:g}" for e in results))
    for place, (coupled, name) in enumerate(((True, "coupled: EBQL"), (False, "apart: own maximum"))):
        mine = [e for e in results if (e.agent == COUPLED) == coupled]
        at = np.arange(len(behaviours)) + 0.36 * (place - 0.5)
        columns = (
            ([e.rate for e in mine], [e.rate_half_width for e in mine]),
            ([e.mean_return for e in mine], [e.return_half_width for e in mine]),
            ([e.spread for e in mine], [e.spread_half_width for e in mine]),
        )
        for axes, (height, half) in zip(panels, columns, strict=True):
            axes.bar(at, height, 0.34, yerr=half, label=name, color=("#3a7d44", "#d1495b")[place])
    titles = ("greedy correct-action rate", "mean return of an episode", "members' spread at the end")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=10)
        axes.set_xticks(range(len(behaviours)), behaviours, fontsize=8)
        tidy(axes)
    _legend(figure, panels[0])
    return figure


def shown_regimes(curves: LearningCurves) -> list[Regime]:
    """Return the regimes of the bias figure: every exploration schedule with the paper's step size."""
    return [r for r in curves.regimes if r.alpha_name == "1/n^0.8"][: len(EPSILONS)]


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=8, fontsize=8)
