"""The status of a study, read from its folder on any machine that sees the files."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ebql.errors import InputError, UserError
from ebql.runs import Attempts, is_timing, last_records, one_line
from ebql.studies.definition import read_study
from ebql.studies.model import STUDY_FILE, Run, Study
from ebql.studies.plan import run_folder
from ebql.studies.tasks import progress

State = Literal["queued", "running", "stopped", "failed", "done"]
STATES: tuple[State, ...] = ("queued", "running", "stopped", "failed", "done")

# Several heartbeats, plus the seconds for which a network file system may show a stale time.
SILENCE_SECONDS = 60.0


class RunStatus(NamedTuple):
    """The status of one run."""

    run: Run
    state: State
    step: int
    """Agent steps (tabular runs: seeds) measured so far."""
    speed: float | None
    """Recent agent steps (tabular runs: seeds) per second."""
    reason: str | None
    """Why it failed or stopped."""

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at this speed; None if the speed is unknown."""
        return None if not self.speed else (self.run.length - self.step) / self.speed


def study_in(out: str | Path) -> Study:
    """Return the study that was last run in the folder `out`."""
    path = Path(out) / STUDY_FILE
    if not path.is_file():
        raise InputError(f"There is no study in {str(out)!r}: it has no {STUDY_FILE}.")
    return read_study(path, to_run=False)


def statuses(study: Study, out: str | Path) -> list[RunStatus]:
    """Return the status of each run of a study; a run whose files cannot be read counts as failed."""
    return [_readable_status(run, run_folder(out, run)) for run in study.runs]


def seconds_left(runs: Sequence[RunStatus], workers: int | None = None) -> float | None:
    """Return the remaining time of a study with `workers` runs at a time; by default as many as run now.

    Runs without a speed are assumed to be as fast as the others; None if no run has a speed.
    """
    running = sum(status.state == "running" for status in runs)
    speeds = [status.speed for status in runs if status.speed]
    if not speeds or not (workers or running):
        return None
    typical = len(speeds) / sum(1 / speed for speed in speeds)
    work = sum(
        (status.run.length - status.step) / (status.speed or typical)
        for status in runs
        if status.state != "done"
    )
    return work / (workers or running)


def _readable_status(run: Run, folder: Path) -> RunStatus:
    try:
        return _status(run, folder)
    except (UserError, OSError) as error:
        return RunStatus(run, "failed", 0, None, one_line(error))


def _status(run: Run, folder: Path) -> RunStatus:
    saved = progress(run, folder)
    speed = speed_of(last_records(folder / "timing.jsonl", understood=is_timing))
    if saved >= run.length:
        return RunStatus(run, "done", saved, speed, None)
    records = last_records(folder / "metrics.jsonl")
    step = max(saved, int(records[-1]["step"]) if records else 0)
    attempts = Attempts(folder)
    events = attempts.read()
    state, reason = state_of(events, attempts.silence())
    if not events and (folder / "config.json").exists():  # made by `ebql train`
        state, reason = "stopped", "Trained outside this study so far."
    return RunStatus(run, state, min(step, run.length), speed, reason)


def state_of(events: Sequence[Mapping[str, Any]], silence: float) -> tuple[State, str | None]:
    """Return the state of a run and its reason, from its attempts and the seconds of silence."""
    if not events:
        return "queued", None
    last = events[-1]
    if last["event"] == "failed":
        return "failed", last["reason"]
    if last["event"] == "started":
        if abs(silence) <= SILENCE_SECONDS:
            return "running", None
        if silence < 0:
            return "stopped", f"Its last heartbeat is {-silence:.0f} s in the future: compare the clocks."
        return "stopped", f"No heartbeat from {last.get('host', 'its machine')} for {silence:.0f} s."
    if last["event"] == "done":  # of a shorter run, which the study has since extended
        return "queued", None
    return "stopped", last["reason"]


def speed_of(records: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the steps per second between the first and the last timing record; None if unknown.

    The time includes evaluations and steps that were repeated after an interruption.
    """
    steps = sum(max(0, after["step"] - before["step"]) for before, after in pairwise(records))
    seconds = math.fsum(record["seconds"] for record in records[1:])
    return steps / seconds if steps and seconds > 0 else None
