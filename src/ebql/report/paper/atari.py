"""Figure 6: our human-normalised scores over training, and where the paper or the literature ends."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter
from numpy.typing import ArrayLike

from ebql.paper.atari.ends import End
from ebql.paper.atari.runs import SMOOTHED_OVER, NormalizedCurve
from ebql.paper.atari.scores import AGENTS, FRAMES_PER_STEP, FULL
from ebql.report.palette import colours
from ebql.terminal.wording import short


def figure_6(curves: Sequence[NormalizedCurve], ends: Sequence[End]) -> Figure:
    """Draw the mean and the median over games; dashed lines are the `ends` of others on the same games."""
    palette = colours(
        list(dict.fromkeys([*AGENTS, *(own.agent for own in curves), *(e.method for e in ends)]))
    )
    figure = Figure(figsize=(10.4, 4.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, statistic in zip(panels, ("mean", "median"), strict=True):
        for curve in curves:
            axes.plot(
                curve.steps,
                getattr(curve.smoothed(), statistic),
                color=palette[curve.agent],
                marker="." if curve.is_short else "",
                label=f"{curve.agent}, {curve.seeds} {'seed' if curve.seeds == 1 else 'seeds'}",
            )
        for end in ends:
            _end_line(axes, end, getattr(end, statistic), palette[end.method])
        _format_axes(axes, statistic, curves)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle(_games_in_words(curves), fontsize=11)
    return figure


def _end_line(axes: Axes, end: End, value: float, colour: str) -> None:
    where = "the paper" if end.is_of_paper else "published"
    label = f"{end.method}, {where} at {short(end.steps)} steps"
    axes.axhline(value, color=colour, linestyle="--", linewidth=1.2, alpha=0.8, label=label)


def _format_axes(axes: Axes, statistic: str, curves: Sequence[NormalizedCurve]) -> None:
    axes.set(xlabel="agent steps", ylabel=f"{statistic} human-normalised score")
    axes.set_xlim(0, max((int(curve.steps[-1]) for curve in curves), default=FULL.steps))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0, decimals=0))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.spines["right"].set_visible(False)
    axes.grid(alpha=0.25)
    frames = axes.secondary_xaxis("top", functions=(_frames, _steps))
    frames.set_xlabel("frames", fontsize=9)
    frames.xaxis.set_major_formatter(EngFormatter(sep=""))


def _frames(steps: ArrayLike) -> ArrayLike:
    return np.multiply(steps, FRAMES_PER_STEP)


def _steps(frames: ArrayLike) -> ArrayLike:
    return np.divide(frames, FRAMES_PER_STEP)


def _games_in_words(curves: Sequence[NormalizedCurve]) -> str:
    sets = {curve.games for curve in curves}
    if not sets:
        return "No runs yet: the paper's table alone, 11 games (random player 0%, human 100%)"
    if len(sets) > 1:
        return "Each agent over its own games (random player 0%, human 100%)"
    (games,) = sets
    named = ", ".join(games) if len(games) <= 4 else f"{len(games)} games"
    smoothing = "" if curves[0].is_short else f"; moving average over {SMOOTHED_OVER} evaluations"
    return f"{named} (random player 0%, human 100%){smoothing}"
