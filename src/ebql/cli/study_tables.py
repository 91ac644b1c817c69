"""Tables and lines about studies: the status of runs, the plan, the cost, and results of tabular agents."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.markup import escape
from rich.table import Column, Table

from ebql.terminal.console import Console

if TYPE_CHECKING:
    from ebql.analysis.table_summary import SummaryRow
    from ebql.studies.costs import Speed
    from ebql.studies.plan import Planned
    from ebql.studies.status import RunStatus

_COLOURS = {"queued": "dim", "running": "cyan", "stopped": "yellow", "failed": "red", "done": "green"}
_SHOWN_FIRST = ("running", "failed", "stopped", "queued", "done")
_ROWS_BESIDE_RUNS = 6


@contextmanager
def live(console: Console, look: Callable[[], list["RunStatus"]]) -> Iterator[Callable[[], None]]:
    """Yield a function to call often: about once a second it reads the status of the runs and shows it.

    In a terminal it shows a table; elsewhere it prints a line whenever a run starts or ends.
    """
    states: dict[str, str] = {}
    table = Live(console=console, auto_refresh=False, transient=True)
    next_look = 0.0

    def tick() -> None:
        nonlocal next_look
        began = time.monotonic()
        if began < next_look:
            return
        found = look()
        if console.is_terminal:
            table.update(status_table(found, console.height - _ROWS_BESIDE_RUNS), refresh=True)
        else:
            _tell_changes(console, found, states)
        # Reading the status must not slow down a big study on a slow disk.
        next_look = began + max(1.0, 20 * (time.monotonic() - began))

    if not console.is_terminal:
        states.update({status.run.name: status.state for status in look()})
        yield tick
        _tell_changes(console, look(), states)
        return
    with table:
        yield tick


def status_table(found: Sequence["RunStatus"], rows: int | None) -> Table:
    """Return a table of the runs with at most `rows` rows, running ones first."""
    from ebql.studies.status import STATES, seconds_left

    table = Table(
        Column("run", no_wrap=True), "state", "progress", "speed", "left", "", box=None, pad_edge=False
    )
    ordered = sorted(found, key=lambda status: _SHOWN_FIRST.index(status.state)) if rows else list(found)
    for status in ordered[:rows]:
        colour = _COLOURS[status.state]
        going = status.state == "running"
        table.add_row(
            escape(status.run.name),
            f"[{colour}]{status.state}[/]",
            f"{status.step:,} of {status.run.length:,}" if status.step else "",
            f"{status.speed:,.0f} {status.run.unit}/s" if status.speed else "",
            duration(status.seconds_left) if going else "",
            escape(status.reason or ""),
        )
    if rows and len(found) > rows:
        table.add_row(f"… and {len(found) - rows} more")
    counts = ((state, sum(status.state == state for status in found)) for state in STATES)
    summary = ", ".join(f"{n} {state}" for state, n in counts if n)
    left = seconds_left(found)
    table.caption = summary + (f"; about {duration(left)} left" if left else "")
    table.caption_justify = "left"
    return table


def plan_line(planned: Sequence["Planned"]) -> str:
    """Return one line that says what a sweep will do."""
    finished = [item for item in planned if item.finished]
    begun = sum(item.done > 0 for item in planned) - len(finished)
    longer = sum(item.done > item.run.length for item in finished)
    summary = f"{len(planned)} runs: {len(finished)} finished"
    summary += f" ({longer} of them longer than the study asks for)" if longer else ""
    stuck = sum(item.obstacle is not None for item in planned)
    summary += f", {begun} to resume, {len(planned) - len(finished) - begun - stuck} new"
    return f"{summary}, {stuck} that cannot continue" if stuck else summary


def cost_table(planned: Sequence["Planned"], speeds: Mapping[str, "Speed"]) -> Table:
    """Return a table of the runs with what is left of each and how long that takes."""
    unit = planned[0].run.unit
    table = Table(
        Column("run", no_wrap=True), f"{unit} done", "left", "speed", "takes", box=None, pad_edge=False
    )
    for item in planned:
        speed = speeds.get(item.run.name)
        done = f"{item.done:,}" if item.done else ""
        if item.obstacle is not None:
            table.add_row(escape(item.run.name), done, escape(item.obstacle))
            continue
        if item.finished or speed is None:
            table.add_row(escape(item.run.name), done, "none")
            continue
        takes = duration(item.left / speed.per_second)
        table.add_row(escape(item.run.name), done, f"{item.left:,}", f"{speed.per_second:,.0f}/s", takes)
    sources = sorted({speed.source for speed in speeds.values()})
    table.caption, table.caption_justify = f"speeds: {'; '.join(sources)}" if sources else None, "left"
    return table


def total_line(left: Sequence["Planned"], speeds: Mapping[str, "Speed"], workers: int) -> str:
    """Return one line that says what the rest of a study costs."""
    amount, unit = sum(item.left for item in left), left[0].run.unit
    takes = [item.left / speeds[item.run.name].per_second for item in left]
    seconds = sum(takes)
    return (
        f"{amount:,} {unit} in {len(left)} runs: {seconds / 3600:,.2f} hours of work, "
        f"about {duration(max(*takes, seconds / workers))} with {workers} at a time"
    )


def summary_table(rows: Sequence["SummaryRow"]) -> Table:
    """Return the results of tabular agents over whole runs, a row for each, with 95% intervals if known."""
    from ebql.estimators.intervals import FEWEST_SEEDS

    cells: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if row.average == "whole run":
            cells.setdefault((row.environment, row.agent), {})[row.metric] = _with_interval(row)
    metrics = ("value", "correct", "bias", "bias_optimal")
    names = (Column(name, no_wrap=True) for name in ("environment", "agent"))
    table = Table(*names, *metrics, box=None, pad_edge=False)
    for (environment, agent), own in cells.items():
        table.add_row(escape(environment), escape(agent), *(own[metric] for metric in metrics))
    averaged = "whole runs and seeds, with 95% intervals"
    if any(row.seeds < FEWEST_SEEDS for row in rows):
        averaged = f"whole runs and seeds; an interval needs {FEWEST_SEEDS} seeds or more"
    table.caption, table.caption_justify = f"means over {averaged}", "left"
    return table


def duration(seconds: float | None) -> str:
    """Return a readable duration: 40 s, 3 min, 2 h 10 min, 3 days 4 h."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24:,} days {hours % 24} h"


def _with_interval(row: "SummaryRow") -> str:
    if row.low is None or row.high is None:
        return f"{row.mean:.3g}"
    return f"{row.mean:.3g}\n± {(row.high - row.low) / 2:.1g}"


def _tell_changes(console: Console, found: Sequence["RunStatus"], states: dict[str, str]) -> None:
    for status in found:
        name = status.run.name
        if states.get(name) != status.state:
            states[name] = status.state
            done = sum(state == "done" for state in states.values())
            count = f"  ({done} of {len(found)} done)" if status.state == "done" else ""
            reason = f": {status.reason}" if status.reason else ""
            console.print(
                f"{name} {status.state}{reason}{count}", highlight=False, markup=False, soft_wrap=True
            )
