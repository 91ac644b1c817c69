"""`ebql sweep`: a study, its status, its cost."""

import shlex
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape

from ebql.cli.importing import Imports, import_named
from ebql.errors import InputError
from ebql.terminal.console import Console

if TYPE_CHECKING:
    from ebql.deep.training.tracking import Tracking
    from ebql.studies.costs import Speed
    from ebql.studies.model import Run, Study
    from ebql.studies.plan import Planned
    from ebql.studies.runners import Runner


def sweep(
    study: Annotated[Path | None, tyro.conf.Positional] = None,
    /,
    out: Path | None = None,
    kept: Path | None = None,
    on: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
    dry_run: bool = False,
    status: Path | None = None,
    track: Literal["wandb", "trackio"] | None = None,
    track_project: str = "ebql",
    track_name: str | None = None,
    accept_changes: bool = False,
    imports: Imports = (),
) -> None:
    """Run a study: every agent in every environment with every seed, each a run that can be resumed.

    Finished runs are skipped, interrupted ones resume from their checkpoint, failed ones are tried again:
    repeat the command until everything is done. Ctrl-C saves checkpoints and stops.

    Args:
        study: The study's file, in TOML.
        out: The study's folder; by default studies/NAME, after the file.
        kept: Leave out the runs that are in this folder of kept results (ebql keep), with the same options.
        on: Where the runs take place: in processes on this machine, or on a Ray cluster.
        workers: Runs at a time on this machine; by default as many as fit its cores.
        address: The cluster's head, HOST:PORT, or auto; by default a cluster is started on this machine.
        dry_run: Only print the runs and what they cost.
        status: Only show the status of the study in this folder.
        track: Also send the metrics to this tracker; it must be installed.
        track_project: The tracker's project.
        track_name: The group of the study's runs; by default the name of the study's folder.
        accept_changes: Continue even though files of a run were changed by hand; the runs record it.
        imports: Import this module first, which may register environments or agents; can be repeated.
    """
    if status is not None:
        _refuse_beside("--status", study, out, address, workers, dry_run, accept_changes)
        import_named(imports)  # the study may name agents of the user's own
        _watch(status, kept)
        return
    if study is None:
        raise InputError("Which study? Give its file: ebql sweep study.toml --out DIR.")
    if on == "local" and address is not None:
        raise InputError("--address is for a Ray cluster: add --on ray.")

    import_named(imports)
    folder = out or Path("studies", study.stem)
    with Console(stderr=True).status(f"reading {escape(str(study))}"):  # imports what its environments need
        from ebql.studies.definition import read_study
        from ebql.studies.plan import plan, without_kept
        from ebql.studies.sweep import keep
        from ebql.studies.sweep import sweep as swept

        whole = read_study(study)
        wanted = whole if kept is None else without_kept(whole, kept)
        planned = plan(wanted, folder, accept_changes=accept_changes)
    for note in wanted.notes:
        Console(stderr=True).print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    if kept is not None:
        line = f"{len(whole.runs) - len(wanted.runs)} of {len(whole.runs)} runs are kept in {kept}"
        Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)
        if not wanted.runs:
            return
    if dry_run:
        _show_cost(wanted, planned, workers)
        return
    tracking = _tracking(track, track_project, track_name or folder.name)
    again = _command(study, out, kept, on, workers, address, tracking, imports)
    if not all(item.finished for item in planned):
        with _runner(on, workers, address, wanted, folder) as runner:
            perform = partial(swept, imports=imports, accept_changes=accept_changes, tracking=tracking)
            _perform(wanted, planned, folder, runner, again, perform, compiles=on == "local")
    else:
        keep(wanted, folder)
    _conclude(wanted, planned, folder, again, accept_changes=accept_changes)


def _command(
    study: Path,
    out: Path | None,
    kept: Path | None,
    on: str,
    workers: int | None,
    address: str | None,
    tracking: "Tracking | None",
    imports: tuple[str, ...],
) -> str:
    """Return the command that continues a sweep, as the shell takes it."""
    given = {
        "--out": out,
        "--kept": kept,
        "--on": None if on == "local" else on,
        "--workers": workers,
        "--address": address,
    }
    if tracking is not None:
        given |= {
            "--track": tracking.tracker,
            "--track-project": tracking.project,
            "--track-name": tracking.group,
        }
    options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    options += [word for module in imports for word in ("--import", module)]
    return shlex.join(["ebql", "sweep", str(study), *options])


def _tracking(track: Literal["wandb", "trackio"] | None, project: str, group: str) -> "Tracking | None":
    """Return where metrics go; refuse a tracker that is not installed."""
    from ebql.deep.training.tracking import Tracking

    return None if track is None else Tracking.of(Tracking(track, project, group=group))


def _runner(
    on: str, workers: int | None, address: str | None, study: "Study", folder: Path
) -> AbstractContextManager["Runner"]:
    if on == "ray":
        from ebql.studies.ray_runner import ray_runner

        return ray_runner(address, workers, study.resources, folder)
    from ebql.studies.runners import local_runner

    return nullcontext(local_runner(workers, study.resources.cpus))


def _perform(
    study: "Study",
    planned: list["Planned"],
    folder: Path,
    runner: "Runner",
    again: str,
    perform: Callable[..., None],
    *,
    compiles: bool,
) -> None:
    """Perform what is left; `compiles`: tables are learnt on this machine, by what it has compiled.

    `perform` is `ebql.studies.sweep.sweep` with the options of the command.
    """
    from ebql.cli.compiling import announced_compiling
    from ebql.cli.study_tables import live, plan_line
    from ebql.studies.kinds import TABULAR
    from ebql.studies.status import statuses
    from ebql.studies.tables.runs import compile_tables

    console = Console(stderr=True)

    def begun() -> None:
        console.print(plan_line(planned), highlight=False, soft_wrap=True)
        if compiles and study.kind == TABULAR:
            with announced_compiling(console):
                compile_tables(item.run for item in planned if not item.finished)

    try:
        with live(console, lambda: statuses(study, folder)) as tick:
            perform(study, planned, folder, runner, tick, begun)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Stopped. → to continue: {again}") from None


def _conclude(
    study: "Study", planned: list["Planned"], folder: Path, again: str, *, accept_changes: bool
) -> None:
    """Print the results of tabular agents, and the next command to run."""
    from ebql.analysis.table_summary import summarise
    from ebql.cli.study_tables import summary_table
    from ebql.studies.kinds import TABULAR
    from ebql.studies.status import statuses
    from ebql.studies.sweep import require_finished

    found = statuses(study, folder)
    if study.kind == TABULAR:
        Console().print(summary_table(summarise(planned, folder, accept_changes=accept_changes)))
    require_finished(found, again)
    longer = sum(status.step > status.run.length for status in found)
    longer_note = f", {longer} of them longer than the study asks for" if longer else ""
    report = shlex.join(["ebql", "report", str(folder)])
    for line in (f"done: {len(found)} runs{longer_note}  → {folder}", f"→ next: {report}"):
        Console(stderr=True).print(line, highlight=False, markup=False, soft_wrap=True)


def _watch(folder: Path, kept: Path | None) -> None:
    """Show the status of a study's runs, without kept ones; in a terminal, until none is running."""
    from ebql.cli.study_tables import live, status_table
    from ebql.studies.plan import without_kept
    from ebql.studies.status import statuses, study_in

    study = study_in(folder)
    if kept is not None:
        study = without_kept(study, kept)
    console = Console()
    if console.is_terminal:
        with live(console, lambda: statuses(study, folder)) as tick:
            while any(status.state == "running" for status in statuses(study, folder)):
                tick()
                time.sleep(1.0)
    console.print(status_table(statuses(study, folder), None))


def _show_cost(study: "Study", planned: list["Planned"], workers: int | None) -> None:
    from ebql.cli.study_tables import cost_table, plan_line, total_line
    from ebql.studies.runners import local_runner

    at_a_time = local_runner(workers, study.resources.cpus).workers
    left = [item for item in planned if not item.finished and item.obstacle is None]
    found = _measured([item for item in planned if item.obstacle is None]) if left else {}
    console = Console()
    console.print(cost_table(planned, found))
    console.print(plan_line(planned), highlight=False, soft_wrap=True)
    if left:
        console.print(total_line(left, found, at_a_time), highlight=False, soft_wrap=True)


def _measured(planned: list["Planned"]) -> dict[str, "Speed"]:
    """Return the speeds of runs; print which runs are tried to measure them."""
    from ebql.cli.compiling import announced_compiling
    from ebql.studies.costs import speeds

    console = Console(stderr=True)

    def trying(run: "Run", number: int, of: int) -> None:
        line = f"measuring the speed of {run.label} on {run.environment} ({number} of {of})"
        status.update(escape(line))
        if not console.is_terminal:
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    with announced_compiling(console), console.status("looking at finished runs") as status:
        return speeds(planned, trying)


def _refuse_beside(option: str, *others: object) -> None:
    if any(others):
        raise InputError(f"{option} takes no other arguments but --kept: ebql sweep {option} DIR.")
