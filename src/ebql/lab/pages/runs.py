"""The page of runs: their states, their curves, and what differs between two of them."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebql.analysis.runs import RecordedRun, RunGroup, over_available_seeds
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.lab.files.index import Index, IndexedRun
from ebql.lab.files.series import averaged, decimated, smoothed, within
from ebql.report.palette import colours
from ebql.runs.metric_names import FRAMES

Floats = NDArray[np.float64]

AXES = ("steps", "frames", "time")
MOST_RUNS = 60
_READ_SECONDS = 1.0
_GROUP_POINTS = 400


def listed(index: Index) -> dict[str, Any]:
    """Return all runs, each with its colour."""
    runs = list(index.runs.values())
    palette = colours(list(dict.fromkeys(run.label for run in runs)))
    return {
        "folder": index.folder.name,
        "runs": [{**run.row(), "colour": palette[run.label]} for run in runs],
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


def curves(
    runs: Sequence[IndexedRun],
    metrics: Sequence[str],
    *,
    axis: str,
    smooth: float,
    group: bool,
    span: tuple[float, float] | None,
) -> dict[str, Any]:
    """Return lines for each metric; `span` is the part of the axis that is shown.

    Large logs are read for about a second at a time: `read` is the share that is known so far, and the page
    asks again until it is 1.
    """
    shares = [log.read(_READ_SECONDS / len(runs)) for run in runs for log in (run.metrics, run.timing)]
    known = dict.fromkeys(name for run in runs for name in run.metrics.metrics)
    shown = [metric for metric in metrics if metric in known]
    palette = colours(list(dict.fromkeys(run.label for run in runs)))
    draw = _group_lines if group else _run_lines
    return {
        "read": min(shares, default=1.0),
        "damaged": sum(run.metrics.damaged for run in runs),
        "metrics": list(known),
        "axes": [name for name in AXES if name == "steps" or all(_has_axis(run, name) for run in runs)],
        "charts": {metric: draw(runs, metric, axis, smooth, span, palette) for metric in shown},
    }


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


def _run_lines(
    runs: Sequence[IndexedRun],
    metric: str,
    axis: str,
    smooth: float,
    span: tuple[float, float] | None,
    palette: dict[str, str],
) -> list[dict[str, Any]]:
    lines = []
    for run in runs:
        steps, values = run.metrics.column(metric)
        x, y = _on_axis(run, steps, axis), smoothed(values, smooth)
        if span:
            x, y = within(x, y, *span)
        x, y = decimated(x, y)
        if len(x):
            seed = run.config["options"].get("seed")
            name = run.label if seed is None else f"{run.label}, seed {seed}"
            lines.append({"id": run.id, "label": name, "colour": palette[run.label], "x": x, "y": y})
    return lines


def _group_lines(
    runs: Sequence[IndexedRun],
    metric: str,
    axis: str,
    smooth: float,
    span: tuple[float, float] | None,
    palette: dict[str, str],
) -> list[dict[str, Any]]:
    """Return the mean over runs with the same label, with a 95% band, or each run if there are too few."""
    lines = []
    groups: dict[tuple[str, str], list[IndexedRun]] = {}
    for run in runs:
        groups.setdefault((run.record.environment, run.label), []).append(run)
    environments = {environment for environment, _ in groups}
    for (environment, label), members in groups.items():
        band = over_available_seeds(_group(members, metric, smooth).curve(metric))
        x = np.mean([_on_axis(run, band.steps.astype(np.float64), axis) for run in members], axis=0)
        if not len(band.mean):
            continue
        name = label if len(environments) == 1 else f"{label} · {environment}"
        many = len(members) >= FEWEST_SEEDS
        line: dict[str, Any] = {
            "id": name,
            "label": f"{name} ({len(members)})",
            "colour": palette[label],
            "x": x,
            "y": band.mean,
        }
        if many:
            line |= {"low": band.mean - band.half_width, "high": band.mean + band.half_width}
        elif len(members) > 1:
            line["seeds"] = [
                {"x": one["x"], "y": one["y"]}
                for one in _run_lines(members, metric, axis, smooth, span, palette)
            ]
        lines.append(line)
    return lines


def _group(members: Sequence[IndexedRun], metric: str, smooth: float) -> RunGroup:
    recorded = []
    for run in members:
        steps, values = run.metrics.column(metric)
        x, y = averaged(steps, smoothed(values, smooth), _GROUP_POINTS)
        points = [{"step": int(step), metric: value} for step, value in zip(x, y.tolist(), strict=True)]
        recorded.append(RecordedRun(run.path, run.config, points))
    return RunGroup(members[0].record.environment, members[0].label, recorded)


def differences(one: IndexedRun, other: IndexedRun) -> dict[str, Any]:
    """Return the settings in which two runs differ, as text."""
    mine, theirs = _settings(one), _settings(other)
    names = [*mine, *(name for name in theirs if name not in mine)]
    rows = [[name, mine.get(name, "—"), theirs.get(name, "—")] for name in names]
    return {"rows": [row for row in rows if row[1] != row[2]], "same": sum(row[1] == row[2] for row in rows)}


def _settings(run: IndexedRun) -> dict[str, str]:
    top = {
        name: run.config.get(name) for name in ("agent", "environment", "label", "steps", "commit", "date")
    }
    versions = run.config.get("versions")
    named = (
        {f"version of {name}": value for name, value in versions.items()}
        if isinstance(versions, dict)
        else {}
    )
    settings = {**top, **run.config["options"], **named}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
