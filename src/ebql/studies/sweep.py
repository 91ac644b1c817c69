"""A study from its file to its end: every run that is missing, on whatever runner."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ebql.errors import RunError
from ebql.runs import exclusive, output_folder, write_csv, write_text
from ebql.studies.definition import STUDY_FILE, Study
from ebql.studies.plan import Planned
from ebql.studies.runners import Runner, Tick
from ebql.studies.status import RunStatus
from ebql.studies.tables.runs import CURVE_HEADER, SummaryRow, curve_rows, read_seed_curves, summary_rows
from ebql.studies.tasks import Task


def sweep(
    study: Study,
    planned: Sequence[Planned],
    out: str | Path,
    runner: Runner,
    tick: Tick,
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Perform what is left of a study in the folder `out`; two sweeps in one folder are refused.

    `begun` is called once the folder is ours.
    """
    folder = output_folder(out)
    with exclusive(folder / ".lock", f"Another sweep is at work in {str(folder)!r}: see its status."):
        keep(study, folder)
        begun()
        tasks = [
            Task(item.run, str(item.folder.resolve()), study.resources.cpus, tuple(sys.argv))
            for item in planned
            if not item.finished
        ]
        runner.run(tasks, tick)


def keep(study: Study, out: str | Path) -> None:
    """Write the study's file into its folder, for whoever asks later what was run there."""
    write_text(output_folder(out) / STUDY_FILE, study.text)


def require_finished(found: Sequence[RunStatus], again: str = "repeat the command") -> None:
    """Raise a `RunError` that says which run failed and why, or how many are unfinished.

    `again` says what continues the study.
    """
    failed = [status for status in found if status.state == "failed"]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(found)} runs failed. {failed[0].run.name}: {failed[0].reason} "
            f"→ to try again: {again}"
        )
    if unfinished := sum(status.state != "done" for status in found):
        raise RunError(f"{unfinished} of {len(found)} runs are unfinished. → to continue: {again}")


def summarise(planned: Sequence[Planned], out: str | Path) -> list[SummaryRow]:
    """Write curves.csv and summary.csv of a study of tables, and return the latter's rows.

    Both hold means over seeds with 95% intervals, of as many seeds as are done.
    """
    found = [(item.run, read_seed_curves(item.folder)) for item in planned]
    asked = [(run, curves.of(run.seeds)) for run, curves in found if curves is not None]
    measured = [(run, curves) for run, curves in asked if len(curves.seeds)]
    folder = output_folder(out)
    over_episodes = (row for run, curves in measured for row in curve_rows(run, curves))
    write_csv(folder / "curves.csv", CURVE_HEADER, over_episodes)
    rows = [row for run, curves in measured for row in summary_rows(run, curves)]
    write_csv(folder / "summary.csv", SummaryRow._fields, rows)
    return rows
