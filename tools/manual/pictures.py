"""Pictures that are drawn from kept results when the site is built."""

import csv
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ebql.runs import write_bytes

_COLOUR = "#2f6fb0"
Rows = list[dict[str, str]]


def write(results: Path, folder: Path) -> None:
    """Write all pictures to `folder`."""
    from ebql.report.images import png

    minatar = _rows(results / "family/minatar/runs.csv")
    offline = _rows(results / "offline/summary.csv")
    write_bytes(folder / "minatar.png", png(each_run(minatar)))
    write_bytes(folder / "offline.png", png(intervals(offline, "MinAtar/Breakout-v1")))


def each_run(rows: Rows) -> Figure:
    """Draw the normalised score and the relative bias of every run, one line per agent."""
    agents = sorted({row["agent"] for row in rows}, key=lambda agent: _mean(rows, agent))
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    scores, biases = figure.subplots(1, 2, sharey=True)
    for axes, column in ((scores, "normalised"), (biases, "relative_bias")):
        for height, agent in enumerate(agents):
            values = [float(row[column]) for row in rows if row["agent"] == agent and row[column]]
            axes.plot(values, [height] * len(values), "o", color=_COLOUR, alpha=0.6)
    scores.set_yticks(range(len(agents)), agents)
    scores.set_xlabel("score: 0 is random play, 1 the best agent")
    biases.set_xlabel("bias, as a fraction of the return")
    _zero(biases)
    return figure


def intervals(rows: Rows, environment: str) -> Figure:
    """Draw score and bias of each agent in one environment with 95% intervals."""
    own = [row for row in rows if row["environment"] == environment][::-1]
    figure = Figure(figsize=(8, 2.4), layout="constrained")
    scores, biases = figure.subplots(1, 2, sharey=True)
    for axes, column in ((scores, "score"), (biases, "bias")):
        for height, row in enumerate(own):
            axes.plot(
                [float(row[f"{column}_low"]), float(row[f"{column}_high"])], [height] * 2, color=_COLOUR
            )
            axes.plot(float(row[column]), height, "o", color=_COLOUR)
        axes.set_xlabel(column)
    scores.set_yticks(range(len(own)), [row["agent"] for row in own])
    _zero(biases)
    return figure


def _zero(axes: Axes) -> None:
    axes.axvline(0, color="grey", linewidth=1, linestyle=":")


def _mean(rows: Rows, agent: str) -> float:
    scores = [float(row["normalised"]) for row in rows if row["agent"] == agent]
    return sum(scores) / len(scores)


def _rows(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
