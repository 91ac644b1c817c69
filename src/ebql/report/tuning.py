"""The picture and the table of a search for good options."""

import json
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ebql.studies.tuning.search import TrialResult
from ebql.studies.tuning.space import Choice, Range, Space

_COMPLETE, _PRUNED, _BEST = "#0072b2", "#9a9a9a", "#009e73"
_COLUMNS = 3


def trials_table(
    ended: Sequence[TrialResult], space: Space
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the header and a row for every trial: its number, outcome, score and options."""
    header = ("trial", "outcome", "score", *space, "reason")
    rows: list[tuple[object, ...]] = [
        (
            trial.number,
            trial.outcome,
            "" if trial.score is None else trial.score,
            *(_text(trial.options.get(name, "")) for name in space),
            trial.reason or "",
        )
        for trial in ended
    ]
    return header, rows


def trials_figure(ended: Sequence[TrialResult], space: Space, title: str) -> Figure:
    """Draw the scores by trial, with the best so far, and a panel of the scores against each option."""
    n_rows = 1 + -(-len(space) // _COLUMNS)
    figure = Figure(figsize=(10, 2.9 * n_rows), layout="constrained")
    grid = figure.add_gridspec(n_rows, _COLUMNS)
    _history(figure.add_subplot(grid[0, :]), ended, title)
    for i, (name, dimension) in enumerate(space.items()):
        axes = figure.add_subplot(grid[1 + i // _COLUMNS, i % _COLUMNS])
        _against(axes, ended, name, dimension)
        if i % _COLUMNS == 0:
            axes.set_ylabel("score")
    return figure


def _history(axes: Axes, ended: Sequence[TrialResult], title: str) -> None:
    complete = [trial for trial in ended if trial.outcome == "complete"]
    _scatter(axes, [(trial.number, trial.score) for trial in complete], "complete")
    _scatter(axes, [(trial.number, trial.score) for trial in ended if trial.outcome == "pruned"], "pruned")
    if complete:
        best = np.maximum.accumulate([trial.score for trial in complete if trial.score is not None])
        numbers = [trial.number for trial in complete]
        axes.step(numbers, best, where="post", color=_BEST, label="best so far")
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel("trial")
    axes.set_ylabel("score of the last evaluation")
    axes.legend(frameon=False, fontsize=9)
    axes.grid(alpha=0.3)


def _against(axes: Axes, ended: Sequence[TrialResult], name: str, dimension: Range | Choice) -> None:
    places = {}
    if not isinstance(dimension, Range):
        names = [_text(value) for value in dimension.values]
        places = {text: place for place, text in enumerate(names)}
        axes.set_xticks(range(len(names)), names, fontsize=8)
    elif dimension.log:
        axes.set_xscale("log")
    for outcome in ("pruned", "complete"):
        points = [
            (places[_text(value)] if places else value, trial.score)
            for trial in ended
            if trial.outcome == outcome and (value := trial.options.get(name)) is not None
        ]
        _scatter(axes, points, outcome)
    axes.set_xlabel(name.replace("_", " "))
    axes.grid(alpha=0.3)


def _scatter(axes: Axes, points: Sequence[tuple[float, float | None]], outcome: str) -> None:
    scored = [(x, y) for x, y in points if y is not None]
    if scored:
        colour, marker = (_COMPLETE, "o") if outcome == "complete" else (_PRUNED, "x")
        xs, ys = zip(*scored, strict=True)
        axes.scatter(xs, ys, c=colour, marker=marker, s=22, label=outcome)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
