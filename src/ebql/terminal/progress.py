"""The progress line of a run."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from ebql.runs.files import visible
from ebql.runs.metric_names import BIAS_MEAN, EPSILON, EVALUATION_RETURN, FRAMES, LOSS, RETURN
from ebql.terminal.console import Console
from ebql.terminal.wording import short


class Shown(NamedTuple):
    """The callbacks that a run reports its progress to."""

    record: Callable[[Mapping[str, Any]], None]
    """Takes each record of metrics."""
    heartbeat: Callable[[int], None]
    """Takes the agent step, before the first step and then often: records may be minutes apart."""


class _Metrics(ProgressColumn):
    """The task's line; in a narrow terminal only this column is cut short."""

    def render(self, task: Task) -> Text:
        return Text(visible(task.fields["line"]), no_wrap=True, overflow="ellipsis")


@contextmanager
def progress(title: str, until: int, folder: Path | None, opening: Callable[[int], str]) -> Iterator[Shown]:
    """Show a run's progress: a live line in a terminal, elsewhere one line for each evaluation.

    `opening` maps the run's first step to a line that says what the run will do. It is printed at the first
    heartbeat, so that a run that is refused before prints only the error. Until then the live line says that
    the run is starting.
    """
    console = Console(stderr=True)
    columns = (
        BarColumn(10),
        TextColumn(f"{{task.completed:,}}/{short(until)}"),
        TimeRemainingColumn(),
        _Metrics(Column()),
    )
    where = f"  → {folder}" if folder else ""
    seen: dict[str, Any] = {}
    reached = 0
    began: tuple[float, int] | None = None

    def tell(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=until, line=f"starting {title}")

        def update(step: int) -> str:
            nonlocal began, reached
            reached = step
            now = time.perf_counter()
            began = began or (now, step)
            speed = (step - began[1]) / (now - began[0]) if now > began[0] else None
            line = _line(seen, speed)
            bar.update(task, completed=step, line=line)
            return line

        def heartbeat(step: int) -> None:
            if began is None:
                tell(opening(step))
            update(step)

        def record(record: Mapping[str, Any]) -> None:
            seen.update(record)  # metrics that are not in this record keep their last value
            line = update(record["step"])
            if EVALUATION_RETURN in record and not console.is_terminal:
                tell(f"step {record['step']}  {_frames(seen)}{line}")

        yield Shown(record, heartbeat)
    if began is None:  # a finished run was resumed
        tell(f"nothing to do: {title} has its {until:,} steps; train further with --steps N" + where)
        return
    ended = f"done: {title}, {until:,} steps" if reached >= until else f"stopped: {title}, {reached:,} steps"
    tell(f"{ended}  {_frames(seen)}{_line(seen, None)}{where}")


def _frames(seen: Mapping[str, Any]) -> str:
    return f"{seen[FRAMES]:,} frames  " if FRAMES in seen else ""


def _line(seen: Mapping[str, Any], speed: float | None) -> str:
    """Return the `speed` in agent steps a second, if it is known, and the latest value of each metric."""
    parts = [f"{speed:,.0f} steps/s"] if speed is not None else []
    shown = (
        (RETURN, "return", ".1f"),
        (EVALUATION_RETURN, "evaluated", ".1f"),
        (LOSS, "loss", ".3g"),
        (EPSILON, "ε", ".2f"),
        (BIAS_MEAN, "bias", "+.2f"),
    )
    parts += [f"{label} {_number(seen[name], form)}" for name, label, form in shown if name in seen]
    return "  ".join(parts)


def _number(value: float | None, form: str) -> str:
    """Return a metric as text; None was measured without a result, so an older number would mislead."""
    return "n/a" if value is None else f"{value:{form}}"
