"""One live line about a run."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ebql.cli.console import Console
from ebql.runs.metric_names import BIAS_MEAN, EPSILON, EVALUATION_RETURN, FRAMES, LOSS, RETURN


@contextmanager
def progress(title: str, until: int, folder: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Show a run's records as they come: a live line in a terminal, one line an evaluation elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(20),
        TaskProgressColumn(),
        TextColumn("{task.fields[line]}"),
        TimeRemainingColumn(),
    )
    seen: dict[str, Any] = {}
    began: list[tuple[float, int]] = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=until, line="")

        def show(record: Mapping[str, Any]) -> None:
            seen.update({name: value for name, value in record.items() if value is not None})
            began.append((time.perf_counter(), record["step"])) if not began else None
            line = _line(seen, began[0])
            bar.update(task, completed=record["step"], line=line)
            if EVALUATION_RETURN in record and not console.is_terminal:
                console.print(f"step {record['step']}  {line}", highlight=False, soft_wrap=True)

        yield show
    line = _line(seen, None)
    console.print(f"done: {title}, {until:,} steps  {line}  → {folder}", highlight=False, soft_wrap=True)


def _line(seen: Mapping[str, Any], began: tuple[float, int] | None) -> str:
    parts = [f"{seen[FRAMES]:,} frames"] if FRAMES in seen else []
    if began is not None and (elapsed := time.perf_counter() - began[0]) > 0:
        parts.append(f"{(seen['step'] - began[1]) / elapsed:,.0f} steps/s")
    shown = (
        (RETURN, "return", ".1f"),
        (EVALUATION_RETURN, "evaluated", ".1f"),
        (LOSS, "loss", ".3g"),
        (EPSILON, "ε", ".2f"),
        (BIAS_MEAN, "bias", "+.2f"),
    )
    parts += [f"{label} {seen[name]:{form}}" for name, label, form in shown if name in seen]
    return "  ".join(parts)
