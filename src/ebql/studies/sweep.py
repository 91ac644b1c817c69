"""Perform the unfinished runs of a study with any runner."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ebql.deep.training.tracking import Tracking
from ebql.errors import InputError, RunError, UserError
from ebql.runs import RunFolder, exclusive, output_folder, write_text
from ebql.studies.kinds import TABULAR
from ebql.studies.model import STUDY_FILE, Study
from ebql.studies.plan import Planned, run_folder
from ebql.studies.runners import Runner, Tick
from ebql.studies.status import RunStatus
from ebql.studies.tasks import Task


def sweep(
    study: Study,
    planned: Sequence[Planned],
    out: str | Path,
    runner: Runner,
    tick: Tick,
    on_start: Callable[[], None] = lambda: None,
    imports: tuple[str, ...] = (),
    *,
    accept_changes: bool = False,
    tracking: Tracking | None = None,
) -> None:
    """Perform the rest of a study in the folder `out`; a second sweep in the same folder is refused.

    `on_start` is called once the folder is locked. Every run first imports the modules `imports`.
    Runs with an obstacle are left out. With `tracking`, metrics of networks also go to a tracker.
    """
    if tracking is not None and study.kind == TABULAR:
        raise InputError("--track is for deep agents: tabular agents log no metrics while they learn.")
    folder = output_folder(out)
    refusal = f"Another sweep is running in {str(folder)!r}; see ebql sweep --status {folder}"
    with exclusive(folder / ".lock", refusal):
        keep(study, folder)
        on_start()
        tasks = [
            Task(
                item.run,
                str(item.folder.resolve()),
                study.resources.cpus,
                tuple(sys.argv),
                imports,
                accept_changes,
                tracking,
            )
            for item in planned
            if not item.finished and item.obstacle is None
        ]
        runner.run(tasks, tick)


def keep(study: Study, out: str | Path) -> None:
    """Record in the folder `out` what the study is: its file, and its labels in the runs that exist.

    A run lacks the label if `ebql train` or an earlier version made it. A run that cannot be opened, or that
    another process is working on, is left as it is.
    """
    write_text(output_folder(out) / STUDY_FILE, study.text)
    for run in study.runs:
        path = run_folder(out, run)
        if not (path / "config.json").exists():
            continue
        with suppress(UserError, OSError):
            folder = RunFolder.open(path)
            with folder.locked():  # which deletes what a killed run left half-written
                if folder.config.get("label") != run.label:
                    folder.updated(label=run.label)


def require_finished(runs: Sequence[RunStatus], again: str = "rerun the command") -> None:
    """Raise a `RunError` that says which run failed and why, or how many are unfinished.

    `again` is the command that continues the study.
    """
    failed = [status for status in runs if status.state == "failed"]
    if failed:
        raise RunError(
            f"{len(failed)} of {len(runs)} runs failed. {failed[0].run.name}: {failed[0].reason} "
            f"→ to try again: {again}"
        )
    if unfinished := sum(status.state != "done" for status in runs):
        raise RunError(f"{unfinished} of {len(runs)} runs are unfinished. → to continue: {again}")
