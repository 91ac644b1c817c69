"""The figures of the studies of related methods. Nothing here writes files."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ebql.paper.chains.curves import DQL, META_CHAIN, QL, Regime
from ebql.paper.family.adaptive import ADAPTIVE, FIXED, RIVALS, SplitCell
from ebql.paper.family.exploration import ExplorationResult
from ebql.paper.family.maps import BANDIT_REGIMES, CHAINS, FAMILY, ArmsPoint, Results, Standing, dominated
from ebql.paper.family.outcomes import Floats, Part
from ebql.report.curves import tidy
from ebql.report.paper.chains import margin_grid
from ebql.tabular import Agent

Episodes = NDArray[np.int64]

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
    worlds = list(dict.fromkeys(row.world for row in rows))
    first = [row for row in rows if row.world == worlds[0]]
    average = {agent: np.mean([row.bias for row in first if row.agent == agent]) for agent in counts}
    ranked = sorted(average, key=lambda agent: average[agent])
    figure = Figure(figsize=(15, 0.42 * len(ranked) + 1.8), layout="constrained")
    panels = figure.subplots(1, len(worlds), sharey=True, squeeze=False)[0]
    for axes, world in zip(panels, worlds, strict=True):
        _line(axes, [row for row in rows if row.world == world], ranked, regimes)
        axes.set_title(world, fontsize=10)
        axes.set_xlabel("final bias of a state's value: under- on the left, over- on the right")
    names = [f"{agent}  ({counts[agent]} of {len(regimes) * len(worlds)})" for agent in ranked]
    panels[0].set_yticks(range(len(ranked)), names, fontsize=9)
    figure.suptitle(
        "Tables on the line from under- to overestimation; red: mean over regimes. In brackets: regimes of "
        "all worlds in which another\nmethod chooses better and has a smaller |bias|",
        fontsize=10,
    )
    panels[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _line(axes: Axes, rows: Sequence[Standing], ranked: list[str], regimes: list[str]) -> None:
    colours = colormaps["tab20"](np.arange(len(regimes)))
    for number, regime in enumerate(regimes):
        mine = [row for row in rows if row.regime == regime]
        axes.errorbar(
            [row.bias for row in mine],
            [ranked.index(row.agent) + 0.5 * number / len(regimes) - 0.25 for row in mine],
            xerr=[row.bias_half_width for row in mine],
            fmt="o",
            markersize=4,
            color=colours[number],
            label=regime,
        )
    for place, agent in enumerate(ranked):
        average = np.mean([row.bias for row in rows if row.agent == agent])
        axes.plot([average] * 2, [place - 0.35, place + 0.35], color="#d1495b", linewidth=2)
    axes.axvline(0, color="black", linewidth=0.8)
    tidy(axes)


def bias_over_time(results: Results) -> Figure:
    """Draw the bias of the state's value on the Meta-Chain over episodes, a column for each exploration.

    A row shows six methods; rows go from over- to underestimation. Q- and double Q-learning are in all rows.
    """
    regimes = list(dict.fromkeys(part.regime for part in results if part.regime.alpha_name == "1/n^0.8"))
    final = {agent: np.mean([_bias_curve(results, r, agent)[1][-1] for r in regimes]) for agent in FAMILY}
    ranked = sorted(FAMILY, key=lambda agent: -final[agent])
    rows = [ranked[first : first + 6] for first in range(0, len(ranked), 6)]
    figure = Figure(figsize=(15, 2.7 * len(rows) + 0.6), layout="constrained")
    panels = figure.subplots(len(rows), len(regimes), sharex=True, sharey="row", squeeze=False)
    colours = colormaps["tab10"](np.arange(6))
    for agents, line in zip(rows, panels, strict=True):
        for regime, axes in zip(regimes, line, strict=True):
            for reference, style in ((QL, "-"), (DQL, "--")):
                axes.plot(*_bias_curve(results, regime, reference), color="0.75", linestyle=style)
            for agent, colour in zip(agents, colours, strict=False):
                axes.plot(*_bias_curve(results, regime, agent), color=colour, label=agent.label)
            axes.axhline(0, color="black", linewidth=0.8)
            tidy(axes)
        line[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    for regime, axes in zip(regimes, panels[0], strict=True):
        axes.set_title(regime.name, fontsize=10)
    for axes in panels[-1]:
        axes.set_xlabel("episode")
    figure.supylabel("bias of the state's value, max Q̄ − max Q*", fontsize=10)
    figure.suptitle(
        "The family on the Meta-Chain, from over- to underestimation; "
        "grey: Q-learning (solid) and double Q-learning (dashed)",
        fontsize=12,
    )
    return figure


def _bias_curve(results: Results, regime: Regime, agent: Agent) -> tuple[Episodes, Floats]:
    outcome = results[Part(META_CHAIN, regime, agent)]
    return outcome.episodes, outcome.bias_over_time


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
    """Draw the lead of the adaptive split over each fixed one and each method, a heat map for each world."""
    regimes = list(dict.fromkeys(c.regime.name for c in cells))
    figure = Figure(figsize=(18, 0.32 * len(RIVALS) + 2.6), layout="constrained")
    panels = figure.subplots(1, len(CHAINS), sharey=True)
    for axes, world in zip(panels, CHAINS, strict=True):
        by_key = {(c.regime.name, c.agent.label): c for c in cells if c.world == world}
        rows = [[by_key[regime, agent.label] for regime in regimes] for agent in RIVALS]
        grid = np.array([[(cell.rate_margin, cell.rate_half_width) for cell in row] for row in rows])
        image = margin_grid(axes, grid, fontsize=7)
        chosen = [by_key[regime, ADAPTIVE.label].mean_split for regime in regimes]
        names = [f"{name} ({split:.1f})" for name, split in zip(regimes, chosen, strict=True)]
        axes.set_xticks(range(len(regimes)), names, rotation=40, ha="right", fontsize=8)
        axes.set_title(world)
        axes.axhline(len(FIXED) - 0.5, color="black", linewidth=1)
    panels[0].set_yticks(range(len(RIVALS)), [agent.label for agent in RIVALS])
    figure.suptitle(
        f"Correct-action rate of {ADAPTIVE.label} minus another agent's; bold: the 95% interval excludes 0. "
        "In brackets: its mean number of selecting members",
        fontsize=10,
    )
    figure.colorbar(image, ax=panels, extend="both", label="margin")
    return figure


def exploration_figure(results: Sequence[ExplorationResult]) -> Figure:
    """Draw the rate, the return and the spread of every ensemble for each behaviour."""
    labels = list(dict.fromkeys(result.agent.label for result in results))
    behaviours = list(dict.fromkeys((e.acting_rule, e.epsilon) for e in results))
    figure = Figure(figsize=(14, 0.34 * len(labels) + 1.8), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for number, (acting_rule, epsilon) in enumerate(behaviours):
        mine = [e for e in results if (e.acting_rule, e.epsilon) == (acting_rule, epsilon)]
        places = [labels.index(e.agent.label) + 0.18 * number - 0.27 for e in mine]
        columns = (
            ([e.rate for e in mine], [e.rate_half_width for e in mine]),
            ([e.mean_return for e in mine], [e.return_half_width for e in mine]),
            ([e.spread for e in mine], [e.spread_half_width for e in mine]),
        )
        for axes, (values, half) in zip(panels, columns, strict=True):
            axes.errorbar(
                values, places, xerr=half, fmt="o", markersize=4, label=f"{acting_rule}, ε {epsilon:g}"
            )
    titles = ("greedy correct-action rate", "mean return of an episode", "members' spread at the end")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=10)
        tidy(axes)
    panels[0].set_yticks(range(len(labels)), labels, fontsize=9)
    panels[0].invert_yaxis()
    _legend(figure, panels[0])
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=8, fontsize=8)
