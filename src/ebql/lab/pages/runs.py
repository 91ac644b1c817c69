"""The page of runs: their states, their curves, and what differs between two of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.analysis.runs import RecordedRun, RunGroup, over_available_seeds
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.lab.files.index import Index, IndexedRun
from ebql.lab.files.naming import names
from ebql.lab.files.series import decimated, in_common_bins, smoothed, within
from ebql.report.palette import colours
from ebql.runs.metric_names import BIAS_AGREEMENT, BIAS_SPREAD, FRAMES

Floats = NDArray[np.float64]

AXES = ("steps", "frames", "time")
MOST_RUNS = 60
_READ_SECONDS = 1.0
_GROUP_POINTS = 400


def listed(index: Index) -> dict[str, Any]:
    """Return all runs, and the folders that cannot be read."""
    return {
        "folder": index.folder.name,
        "runs": [run.row() for run in index.runs.values()],
        "refused": [{"id": identity, "reason": reason} for identity, reason in index.refused.items()],
    }


def changes(before: dict[str, Any] | None, after: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is new since `before`: rows that changed, and ids that are gone; None if nothing is."""
    if before is None:
        return {**after, "gone": []}
    old = {row["id"]: row for row in before["runs"]}
    rows = [row for row in after["runs"] if old.get(row["id"]) != row]
    gone = sorted(old.keys() - {row["id"] for row in after["runs"]})
    if not rows and not gone and before["refused"] == after["refused"]:
        return None
    return {**after, "runs": rows, "gone": gone}


@dataclass(frozen=True)
class View:
    """How curves are shown."""

    axis: str = "steps"
    """One of `AXES`."""
    smooth: float = 0.0
    """The share of all points over which a curve is averaged."""
    group: bool = False
    """Whether runs that differ only in their seed are one curve."""
    span: tuple[float, float] | None = None
    """The part of the axis that is shown; None for all of it."""


class NamedRun(NamedTuple):
    """A run, and what it is called among the selected ones."""

    name: str
    run: IndexedRun


def curves(runs: Sequence[IndexedRun], metrics: Sequence[str], view: View) -> dict[str, Any]:
    """Return the lines of each metric.

    Large logs are read for about a second at a time: `read` is the share that is known so far, and the page
    asks again until it is 1.
    """
    shares = [log.read(_READ_SECONDS / len(runs)) for run in runs for log in (run.metrics, run.timing)]
    known = dict.fromkeys(name for run in runs for name in run.metrics.metrics)
    called = names({run.id: run.record for run in runs}, {run.id: run.label for run in runs})
    shown = [NamedRun(called[run.id], run) for run in runs]
    draw = _group_lines if view.group else _run_lines
    charts = {
        metric: draw([one for one in shown if _has(one.run, metric)], metric, view)
        for metric in metrics
        if metric in known
    }
    palette = colours(list(dict.fromkeys(called.values())))
    return {
        "read": min(shares, default=1.0),
        "damaged": sum(run.metrics.damaged for run in runs),
        "metrics": list(known),
        "axes": [name for name in AXES if name == "steps" or all(_has_axis(run, name) for run in runs)],
        "names": called,
        "colours": palette,
        "charts": charts,
    }


def _has(run: IndexedRun, metric: str) -> bool:
    """Whether a run has measured this; spread and agreement mean nothing for a single member."""
    if metric in (BIAS_SPREAD, BIAS_AGREEMENT) and not run.metrics.column(BIAS_SPREAD)[1].any():
        return False
    return len(run.metrics.column(metric)[0]) > 0


def _has_axis(run: IndexedRun, axis: str) -> bool:
    return FRAMES in run.metrics.metrics if axis == "frames" else "seconds" in run.timing.metrics


def _on_axis(run: IndexedRun, steps: Floats, axis: str) -> Floats:
    """Return where steps lie on the axis: steps, frames, or hours of training."""
    if axis == "frames":
        at, frames = run.metrics.column(FRAMES)
        return np.interp(steps, at, frames) if len(at) else steps
    if axis == "time":
        at, seconds = run.timing.column("seconds")
        return np.interp(steps, at, seconds.cumsum() / 3600) if len(at) else steps
    return steps


def _run_lines(shown: Sequence[NamedRun], metric: str, view: View) -> list[dict[str, Any]]:
    lines = []
    for name, run in shown:
        steps, values = run.metrics.column(metric)
        x, y = _on_axis(run, steps, view.axis), smoothed(values, view.smooth)
        if view.span:
            x, y = within(x, y, *view.span)
        x, y = decimated(x, y)
        seed = run.config["options"].get("seed")
        label = name if seed is None else f"{name}, seed {seed}"
        lines.append({"name": name, "label": label, "x": x, "y": y})
    return lines


def _group_lines(shown: Sequence[NamedRun], metric: str, view: View) -> list[dict[str, Any]]:
    """Return the mean over runs with the same name, with a 95% band, or each run if there are too few."""
    groups: dict[tuple[str, str], list[NamedRun]] = {}
    for one in shown:
        groups.setdefault((one.run.record.environment, one.name), []).append(one)
    environments = {environment for environment, _ in groups}
    lines = []
    for (environment, name), members in groups.items():
        group = _group([run for _, run in members], metric, view.smooth)
        band = over_available_seeds(group.curve(metric))
        steps = band.steps.astype(np.float64)
        label = name if len(environments) == 1 else f"{name} · {environment}"
        line: dict[str, Any] = {
            "name": name,
            "label": f"{label} ({len(members)})",
            "x": np.mean([_on_axis(run, steps, view.axis) for _, run in members], axis=0),
            "y": band.mean,
        }
        if len(members) >= FEWEST_SEEDS:
            line |= {"low": band.mean - band.half_width, "high": band.mean + band.half_width}
        elif len(members) > 1:
            line["seeds"] = _run_lines(members, metric, view)
        lines.append(line)
    return lines


def _group(runs: Sequence[IndexedRun], metric: str, smooth: float) -> RunGroup:
    recorded = []
    columns = [run.metrics.column(metric) for run in runs]
    lines = in_common_bins([(steps, smoothed(values, smooth)) for steps, values in columns], _GROUP_POINTS)
    for run, (x, y) in zip(runs, lines, strict=True):
        points = [{"step": int(step), metric: value} for step, value in zip(x, y.tolist(), strict=True)]
        recorded.append(RecordedRun(run.path, run.config, points))
    return RunGroup(runs[0].record.environment, runs[0].label, recorded)


def differences(one: IndexedRun, other: IndexedRun) -> dict[str, Any]:
    """Return the settings in which two runs differ, as text."""
    mine, theirs = _settings(one), _settings(other)
    names = [*mine, *(name for name in theirs if name not in mine)]
    rows = [[name, mine.get(name, "—"), theirs.get(name, "—")] for name in names]
    return {"rows": [row for row in rows if row[1] != row[2]], "same": sum(row[1] == row[2] for row in rows)}


def _settings(run: IndexedRun) -> dict[str, str]:
    config = run.config
    top = {name: config.get(name) for name in ("agent", "environment", "label", "steps", "commit", "date")}
    versions = config.get("versions")
    named = versions if isinstance(versions, dict) else {}
    settings = {**top, **config["options"], **{f"version of {name}": value for name, value in named.items()}}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
