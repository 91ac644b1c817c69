"""Figures 3 and 5 and the regime map, drawn, and their sections of the report page."""

from collections.abc import Callable, Sequence
from html import escape

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ebql.analysis.statistics import Floats
from ebql.paper.chains.claims import figure_3_claims, figure_5_claims
from ebql.paper.chains.curves import (
    AGENTS,
    DQL,
    ENSEMBLES,
    FIGURE_3_WORLDS,
    META_CHAIN,
    NEGATIVE_CHAIN,
    POSITIVE_CHAIN,
    QL,
    REGIMES,
    LearningCurves,
    Margin,
    Regime,
    margins,
)
from ebql.paper.chains.rows import bias_table, figure_3_table, figure_5_table, regime_table
from ebql.report import page
from ebql.report.curves import tidy
from ebql.report.images import png
from ebql.report.paper.section import FigureFolder, Section
from ebql.runs import write_bytes
from ebql.tabular import Agent, Group, Metric

SHOWN_FIRST = REGIMES[1]
"""The regime that the report page shows first: the middle of the grid."""

# Q-learning is red, double Q-learning blue; larger ensembles are darker.
COLOURS = {QL.label: "#d1495b", DQL.label: "#2e6fba"} | {
    agent.label: colormaps["summer_r"](0.25 + 0.75 * index / (len(ENSEMBLES) - 1))
    for index, agent in enumerate(ENSEMBLES)
}


def figure_3_section(curves: LearningCurves, folder: FigureFolder) -> Section:
    """Write and judge figure 3."""
    folder.write_table("fig3", figure_3_table(curves))
    return Section(
        "Figure 3: how often the correct action is chosen",
        "Q-learning excels where risk pays, double Q-learning where risk costs, and EBQL on both; larger "
        "ensembles do better. The paper does not say how its agents explored, so choose a regime below.",
        _picture_of_each_regime("fig3", figure_3, curves, folder, "Correct-action rate over episodes"),
        figure_3_claims(curves),
    )


def figure_5_section(curves: LearningCurves, folder: FigureFolder) -> Section:
    """Write and judge figure 5."""
    folder.write_table("fig5", figure_5_table(curves))
    folder.write_table("fig5-panels", bias_table(curves))
    return Section(
        "Figure 5: the bias of the Q-values",
        "The bias of Q-learning goes to zero from above, that of double Q-learning from below. The bias of "
        "EBQL shrinks as the ensemble grows. Tables initialised with zeros add a bias early in training.",
        _picture_of_each_regime("fig5", figure_5, curves, folder, "Estimation bias over episodes"),
        figure_5_claims(curves),
    )


def regime_section(curves: LearningCurves, folder: FigureFolder) -> Section:
    """Write the regime map."""
    greedy = margins(curves)
    behaviour = margins(curves, Metric.BEHAVIOUR_CORRECT)
    folder.write_table("regimes", regime_table([*greedy, *behaviour]))
    return Section(
        "The regime map: where EBQL beats both Q-learning and double Q-learning",
        "EBQL excels on the Meta-Chain, where neither optimism nor pessimism always pays.",
        folder.write_picture("regimes", regime_map(greedy), "Margin of EBQL in every regime")
        + f"<p>{escape(regime_map_in_words(greedy))}</p>",
    )


def _picture_of_each_regime(
    name: str,
    draw: Callable[[LearningCurves, Regime], Figure],
    curves: LearningCurves,
    folder: FigureFolder,
    description: str,
) -> str:
    """Write a picture of each regime; return them as tabs. The first tab is also written as `name`.png."""
    ordered = sorted(curves.regimes, key=lambda regime: regime != SHOWN_FIRST)
    panels = {}
    for regime in ordered:
        figure = draw(curves, regime)
        if regime == SHOWN_FIRST:
            write_bytes(folder.path / f"{name}.png", png(figure))
        panels[regime.name] = folder.write_picture(f"{name}-{regime.slug}", figure, description)
    return page.tabs(name, panels)


PANEL_TITLES = {
    NEGATIVE_CHAIN: "(a) one chain, mean −0.2: risk costs",
    POSITIVE_CHAIN: "(b) one chain, mean +0.2: risk pays",
    META_CHAIN: "(c) the Meta-Chain, six means",
}


def figure_3(curves: LearningCurves, regime: Regime) -> Figure:
    """Draw the correct-action rate over episodes in one regime, with 95% bands, a panel per world."""
    figure = Figure(figsize=(12, 3.9), layout="constrained")
    panels = figure.subplots(1, len(FIGURE_3_WORLDS), sharey=True)
    for axes, world in zip(panels, FIGURE_3_WORLDS, strict=True):
        for agent in AGENTS:
            _band(axes, curves, regime, world, agent, Metric.GREEDY_CORRECT, Group.ALL)
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


def figure_5(curves: LearningCurves, regime: Regime) -> Figure:
    """Draw the biases of `BIAS_PANELS` on the Meta-Chain over episodes in one regime, with 95% bands."""
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True)
    for axes, (title, metric, group) in zip(panels.flat, BIAS_PANELS, strict=True):
        for agent in AGENTS:
            _band(axes, curves, regime, META_CHAIN, agent, metric, group)
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
    """Draw a heat map of the margins of each agent (column) in each regime (row)."""
    regimes = list(dict.fromkeys(m.regime.name for m in margins))
    agents = list(dict.fromkeys(m.agent.label for m in margins))
    cells = {(m.regime.name, m.agent.label): m for m in margins}
    rotation = 0 if len(agents) <= len(ENSEMBLES) else 40
    size = (4.2 + 0.8 * len(agents), 0.42 * len(regimes) + (2.4 if rotation else 1.6))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    grid = np.array([[(cells[r, a].margin, cells[r, a].half_width) for a in agents] for r in regimes])
    image = margin_grid(axes, grid, fontsize=9)
    axes.set_xticks(range(len(agents)), agents, rotation=rotation, ha="right" if rotation else "center")
    rivals = {r: {cells[r, a].rival for a in agents} for r in regimes}
    names = [f"{r}   (vs {' or '.join(sorted(rivals[r], reverse=True))})" for r in regimes]
    axes.set_yticks(range(len(regimes)), names)
    axes.set_title(
        f"Correct-action rate of {whose} minus that of QL or DQL, whichever gives the less certain lead\n"
        "Meta-Chain, whole run; bold: the 95% interval excludes 0",
        fontsize=10,
    )
    figure.colorbar(image, ax=axes, extend="both", label="margin")
    return figure


def regime_map_in_words(cells: Sequence[Margin]) -> str:
    """Say how many cells of the regime map are positive and negative, and where the extremes are."""
    ahead = [cell for cell in cells if cell.margin > cell.half_width]
    behind = [cell for cell in cells if cell.margin < -cell.half_width]
    best, worst = (choose(cells, key=lambda cell: cell.margin) for choose in (max, min))
    return (
        f"In {len(ahead)} of {len(cells)} cells EBQL is ahead of both Q-learning and double Q-learning, and "
        f"in {len(behind)} it is behind one of them, with 95% intervals that exclude 0. Its largest lead is "
        f"{best.margin:+.3f} ({best.agent.label} over {best.rival}, {best.regime.name}) and its largest "
        f"deficit {worst.margin:+.3f} ({worst.agent.label} against {worst.rival}, {worst.regime.name}). "
        "With little exploration, an optimistic value is soon tried and corrected, while a pessimistic value "
        "is never revisited. That makes Q-learning hard to beat in such regimes."
    )


def margin_grid(axes: Axes, grid: Floats, *, fontsize: float) -> AxesImage:
    """Draw a heat map of margins and half-widths of their intervals, `grid` (rows, columns, 2).

    Each cell shows its margin, in bold if the interval excludes 0.
    """
    # The colour scale is fixed and centred on 0, so that a large loss does not hide small gains.
    image = axes.imshow(grid[:, :, 0], cmap="RdBu", vmin=-0.1, vmax=0.1, aspect="auto")
    for row, column in np.ndindex(grid.shape[:2]):
        margin, half_width = grid[row, column]
        excludes_zero = abs(margin) > half_width
        axes.text(
            column,
            row,
            f"{margin:+.3f}",
            ha="center",
            va="center",
            fontsize=fontsize,
            fontweight="bold" if excludes_zero else "normal",
            color="white" if abs(margin) > 0.05 else ("black" if excludes_zero else "#666666"),
        )
    return image


def _band(
    axes: Axes, curves: LearningCurves, regime: Regime, world: str, agent: Agent, metric: Metric, group: Group
) -> None:
    curve = curves.get(regime, world, agent)
    mean, half_width = curve.over_seeds(metric, group)
    colour = COLOURS[agent.label]
    low, high = mean - half_width, mean + half_width
    axes.plot(curve.episodes, mean, color=colour, linewidth=1.4, label=agent.label)
    axes.fill_between(curve.episodes, low, high, color=colour, alpha=0.15, linewidth=0)


def _legend_below(figure: Figure, axes: Axes) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=len(AGENTS), fontsize=9
    )
