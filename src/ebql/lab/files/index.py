"""All runs below a folder, found again as they come and go."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from ebql.analysis.runs import RecordedRun
from ebql.errors import InputError
from ebql.lab.files.logs import GrowingLog
from ebql.lab.files.naming import folder_labels
from ebql.runs import Attempts, RunFolder, is_timing, last_records, one_line
from ebql.runs.folder import FORMAT
from ebql.studies.model import STUDY_FILE
from ebql.studies.status import SILENCE_SECONDS, speed_of, state_of

_DEEPEST = 8
_NOT_SEARCHED = {"checkpoints", "node_modules", "__pycache__"}
_SECONDS_BETWEEN_SCANS = 2.0
_SECONDS_OF_A_COPY = 1.0  # between its files, if it does not keep their times
FILMS = (".gif", ".mp4")


@dataclass
class IndexedRun:
    """A run below the folder, with the logs that were read so far."""

    id: str
    """Its path below the folder, with slashes."""
    path: Path
    config: Mapping[str, Any]
    opened: tuple[float, int]
    """When its config.json had been changed, and its length."""
    label: str = ""
    """Its agent, and the options in which the runs of its folder differ."""
    metrics: GrowingLog = field(init=False)
    timing: GrowingLog = field(init=False)
    _seen: tuple[Any, ...] = ()
    _status: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the logs, without reading them."""
        self.metrics, self.timing = (
            GrowingLog(self.path / name) for name in ("metrics.jsonl", "timing.jsonl")
        )

    @property
    def record(self) -> RecordedRun:
        """The run without its measurements."""
        return RecordedRun(self.path, self.config, ())

    @property
    def steps(self) -> int | None:
        """The agent steps that it shall take; None for tabular runs, which count seeds."""
        return self.config.get("steps")

    def films(self) -> list[str]:
        """Return the names of its films; links are no films."""
        try:
            with os.scandir(self.path) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if entry.name.endswith(FILMS) and entry.is_file(follow_symlinks=False)
                )
        except OSError:  # the run was deleted since the folder was searched
            return []

    def status(self) -> dict[str, Any]:
        """Return its state, step and speed, read again only if its files have changed."""
        seen = tuple(
            _changed(self.path / name) for name in ("metrics.jsonl", "timing.jsonl", "attempts.jsonl")
        )
        if seen != self._seen or self._status["state"] == "running":
            self._seen, self._status = seen, self._read_status()
        return self._status

    def _read_status(self) -> dict[str, Any]:
        try:
            records = last_records(self.path / "metrics.jsonl")
            speed = speed_of(last_records(self.path / "timing.jsonl", understood=is_timing))
            step = int(records[-1]["step"]) if records else 0
            state, reason = self._state(step)
        except (InputError, OSError, KeyError, TypeError, ValueError) as error:
            return {"state": "failed", "reason": one_line(error), "step": 0, "speed": None, "left": None}
        left = (self.steps - step) / speed if self.steps and speed and state == "running" else None
        return {"state": state, "reason": reason, "step": step, "speed": speed, "left": left}

    def _state(self, step: int) -> tuple[str, str | None]:
        if self.steps is not None and step >= self.steps:
            return "done", None
        attempts = Attempts(self.path)
        if events := attempts.read():
            if self.steps is None and events[-1]["event"] == "done":
                return "done", None
            state, reason = state_of(events, attempts.silence())
            logged = _changed(self.path / "metrics.jsonl")[0]
            is_later = logged > _changed(attempts.path)[0] + _SECONDS_OF_A_COPY
            # `ebql resume` may go on with it: like `ebql train`, it keeps no heartbeat.
            return ("running", None) if is_later and _is_fresh(logged) else (state, reason)
        written = max(_changed(self.path / name)[0] for name in ("config.json", "metrics.jsonl"))
        return ("running" if _is_fresh(written) else "stopped"), None

    def row(self) -> dict[str, Any]:
        """Return what the list of runs shows."""
        record = self.record
        return {
            "id": self.id,
            "label": self.label,
            "environment": record.environment,
            "seed": self.config["options"].get("seed"),
            "steps": self.steps,
            "films": self.films(),
            **self.status(),
        }


class Index:
    """The runs and studies below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._runs: dict[str, IndexedRun] = {}
        self._studies: list[str] = []
        self._refused: dict[str, str] = {}
        self._scanned = -_SECONDS_BETWEEN_SCANS
        self._lock = Lock()

    @property
    def runs(self) -> dict[str, IndexedRun]:
        """The runs by id; the folder is searched again every two seconds."""
        self._scan()
        return self._runs

    @property
    def refused(self) -> dict[str, str]:
        """Folders that look like runs but cannot be read, and why."""
        self._scan()
        return self._refused

    @property
    def studies(self) -> list[str]:
        """The paths of all studies below the folder, and of other folders that hold several runs."""
        self._scan()
        return self._studies

    def run(self, identity: str) -> IndexedRun:
        """Return the run with this id. Ids are looked up, never joined to a path: none leaves the folder."""
        found = self.runs.get(identity)
        if found is None:
            raise InputError(f"There is no run {identity[:200]!r} below this folder.")
        return found

    def _scan(self) -> None:
        with self._lock:
            if time.monotonic() - self._scanned < _SECONDS_BETWEEN_SCANS:
                return
            runs: dict[str, IndexedRun] = {}
            refused: dict[str, str] = {}
            studies: set[str] = set()
            for path in self._folders(studies):
                identity = path.relative_to(self.folder).as_posix()
                try:
                    known = self._runs.get(identity)
                    is_same = known is not None and known.opened == _changed(path / "config.json")
                    runs[identity] = known if known is not None and is_same else _opened(identity, path)
                except InputError as error:
                    if FORMAT in _beginning(path / "config.json"):
                        refused[identity] = str(error)
            parents = {run.path.parent for run in runs.values() if run.path != self.folder}
            studies |= {parent.relative_to(self.folder).as_posix() for parent in parents}
            if list(map(id, runs.values())) != list(map(id, self._runs.values())):
                labels = folder_labels({identity: run.record for identity, run in runs.items()})
                for identity, label in labels.items():
                    runs[identity].label = label
            self._runs, self._refused = runs, refused
            self._studies = _distinct(studies, runs)
            self._scanned = time.monotonic()

    def _folders(self, studies: set[str]) -> Iterator[Path]:
        """Yield the folders that hold a config.json; add those with a study file to `studies`."""
        for place, folders, files in os.walk(self.folder):
            path = Path(place)
            relative = path.relative_to(self.folder)
            if STUDY_FILE in files:
                studies.add(relative.as_posix())
            if "config.json" in files:
                folders.clear()
                yield path
            elif len(relative.parts) >= _DEEPEST:
                folders.clear()
            folders[:] = sorted(name for name in folders if name[0] != "." and name not in _NOT_SEARCHED)


def _opened(identity: str, path: Path) -> IndexedRun:
    opened = _changed(path / "config.json")  # before it is read: a later change is then noticed
    config = RunFolder.open(path).config
    missing = [key for key in ("agent", "environment", "options") if key not in config]
    if missing:
        raise InputError(f"{str(path)!r} does not say what was run: it lacks {', '.join(missing)}.")
    return IndexedRun(identity, path, config, opened)


def _distinct(folders: Iterable[str], runs: Mapping[str, IndexedRun]) -> list[str]:
    """Return the folders with at least two runs; of folders with the same runs, the outermost."""
    found: dict[tuple[str, ...], str] = {}
    for folder in sorted(folders, key=len):
        below = tuple(identity for identity in runs if folder == "." or identity.startswith(f"{folder}/"))
        if len(below) > 1:
            found.setdefault(below, folder)
    return sorted(found.values())


def _is_fresh(changed: float) -> bool:
    return time.time() - changed < SILENCE_SECONDS


def _changed(path: Path) -> tuple[float, int]:
    try:
        found = path.stat()
    except OSError:
        return 0.0, 0
    return found.st_mtime, found.st_size


def _beginning(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(4096).decode(errors="replace")
    except OSError:
        return ""
