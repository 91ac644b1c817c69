"""The logs of a run: one JSON object per line with a seal, appended during the run."""

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ebql.errors import InputError, RunError
from ebql.runs.files import decoded, open_unlinked, sync_folder
from ebql.runs.seals import ACCEPT, SEAL, changed_lines, is_sealed, sealed_line

Record = dict[str, Any]
Understood = Callable[[Record], bool]


class DamagedLogWarning(UserWarning):
    """Lines of a log are damaged, and the rest of it is used."""


class LostLogError(RunError):
    """A log was deleted or replaced while the run was writing it."""


class Log(NamedTuple):
    """What a log holds."""

    records: list[Record]
    """The records that can be read and understood, without their seals."""
    damaged: list[int]
    """The numbers, from 1 on, of lines that hold no such record."""
    changed: list[int]
    """The numbers of lines that do not fit their seals."""
    sealed: bool
    """Whether all lines have seals; logs written by version 0.1 have none."""

    @property
    def wrong(self) -> list[int]:
        """The numbers of all lines that are damaged or changed."""
        return sorted({*self.damaged, *self.changed})


class MetricsLog:
    """Appends records to a file. After `append` returns, killing the process does not lose the record.

    A checkpoint stores `position()`. A resumed run opens the log at that position and discards later records;
    it then writes them again, so the final file does not depend on interruptions.

    >>> with MetricsLog("log.jsonl", position=0) as log:
    ...     log.append({"step": 1, "loss": 0.5})
    ...     position = log.position()  # what a checkpoint keeps
    ...     log.append({"step": 2, "loss": 0.4})
    >>> with MetricsLog("log.jsonl", position) as log:  # back to the checkpoint
    ...     log.append({"step": 2, "loss": 0.4})
    >>> read_metrics("log.jsonl")
    [{'step': 1, 'loss': 0.5}, {'step': 2, 'loss': 0.4}]
    """

    def __init__(self, path: str | Path, position: int, *, accept_changes: bool = False) -> None:
        """Open or create `path` and discard everything after `position` (0, or that of a checkpoint).

        If what was written before has been changed, raise an error or, if changes are accepted, continue
        after the last complete line.
        """
        self._path = Path(path)
        before = _bytes(self._path)[:position]
        self.changed = _changes(self._path, before, position)
        """What was changed in the lines before `position`, in words; None if nothing was."""
        if self.changed is not None:
            if not accept_changes:
                raise InputError(f"{self.changed} {ACCEPT}")
            before = before[: before.rfind(b"\n") + 1]
        self._open(before)

    @classmethod
    def continued(cls, path: str | Path) -> Self:
        """Open or create `path` after its last complete line; a crash can leave an incomplete one."""
        log = cls.__new__(cls)
        log._path, log.changed = Path(path), None
        before = _bytes(log._path)
        log._open(before[: before.rfind(b"\n") + 1])
        return log

    def _open(self, before: bytes) -> None:
        is_new = not self._path.exists()
        self._file = open_unlinked(self._path, "ab")
        self._file.truncate(len(before))
        self._last_line = before[:-1].rpartition(b"\n")[2]
        if is_new:
            sync_folder(self._path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record; raise an error for NaN and infinity, which JSON lacks (use None).

        A `LostLogError` is raised if the file is no longer where it was.
        """
        body = json.dumps(record, allow_nan=False, ensure_ascii=False).encode()
        self._last_line = sealed_line(body, self._last_line)
        self._file.write(self._last_line + b"\n")
        self._file.flush()
        self._require_in_place()

    def position(self) -> int:
        """Flush the log to disk and return its length in bytes."""
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _require_in_place(self) -> None:
        try:
            in_place = os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            in_place = False
        if not in_place:
            raise LostLogError(f"{str(self._path)!r} was deleted or replaced while the run was writing it.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def has_step(record: Record) -> bool:
    """Whether a record says at which step it was made.

    >>> has_step({"step": 100, "loss": 0.5}), has_step({"loss": 0.5})
    (True, False)
    """
    return _is_count(record.get("step"))


def is_timing(record: Record) -> bool:
    """Whether a record of `timing.jsonl` says how long its steps took.

    >>> is_timing({"step": 100, "seconds": 0.3}), is_timing({"step": 100})
    (True, False)
    """
    seconds = record.get("seconds")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        return False
    return has_step(record) and 0 <= seconds < math.inf


def read_log(path: str | Path, understood: Understood = has_step) -> Log:
    """Read a log, without an incomplete last line of a run in progress; an empty one if there is no file.

    >>> with MetricsLog("read.jsonl", position=0) as log:
    ...     log.append({"step": 1})
    >>> read_log("read.jsonl").records, read_log("read.jsonl").wrong, read_log("gone.jsonl").records
    ([{'step': 1}], [], [])
    """
    content = _bytes(Path(path))
    return _log(content[: content.rfind(b"\n") + 1], understood)


def read_metrics(
    path: str | Path, understood: Understood = has_step, *, accept_changes: bool = False
) -> list[Record]:
    """Return the records of a log that a result depends on.

    Raises an error if a line is damaged or was changed; if changes are accepted, damaged lines are left out.

    >>> from ebql import DQN
    >>> _ = DQN("CartPole-v1", evaluation_period=0, log_period=100, seed=0).learn(200, out="runs/short")
    >>> [record["step"] for record in read_metrics("runs/short/metrics.jsonl")]
    [100, 200]
    """
    log = read_log(path, understood)
    if log.wrong and not accept_changes:
        raise InputError(f"{changed_in_words(path, log.wrong)} {ACCEPT}")
    return log.records


def read_intact(path: str | Path, understood: Understood) -> list[Record]:
    """Return the records of a log that no result depends on; damaged lines give a warning.

    >>> with MetricsLog("timing.jsonl", position=0) as log:
    ...     log.append({"step": 100, "seconds": 0.5})
    >>> read_intact("timing.jsonl", is_timing)
    [{'step': 100, 'seconds': 0.5}]
    """
    log = read_log(path, understood)
    _warn(path, log.damaged)
    return log.records


def last_records(path: str | Path, size: int = 4096, understood: Understood = has_step) -> list[Record]:
    """Return the records in the last `size` bytes of a log; damaged lines give a warning.

    >>> with MetricsLog("long.jsonl", position=0) as log:
    ...     for step in range(1_000):
    ...         log.append({"step": step})
    >>> last_records("long.jsonl", size=100)
    [{'step': 998}, {'step': 999}]
    """
    try:
        with open_unlinked(Path(path), "rb") as file:
            start = max(file.seek(0, os.SEEK_END) - size, 0)
            file.seek(start)
            content = file.read()
    except FileNotFoundError:
        return []
    first = content.find(b"\n") + 1 if start else 0
    log = _log(content[first : content.rfind(b"\n") + 1], understood)
    _warn(path, log.damaged)
    return log.records


def changed_in_words(path: str | Path, lines: list[int]) -> str:
    """Say which lines of a log were changed."""
    which = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines)} lines, the first is line {lines[0]}"
    return f"{str(path)!r} was changed after it was written ({which})."


def _warn(path: str | Path, damaged: list[int]) -> None:
    if damaged:
        lines = "line" if len(damaged) == 1 else "lines"
        warnings.warn(
            f"{str(path)!r} is damaged: {len(damaged)} {lines} cannot be understood and will be left out.",
            DamagedLogWarning,
            stacklevel=3,
        )


def _changes(path: Path, before: bytes, position: int) -> str | None:
    """Say how the bytes before a checkpoint's position differ from what was written; None if they do not."""
    if len(before) < position:
        return (
            f"{str(path)!r} has only {len(before)} bytes, but its checkpoint was saved at {position}: "
            "the end of the file is lost."
        )
    if before and not before.endswith(b"\n"):
        return changed_in_words(path, [before.count(b"\n") + 1])
    wrong = _log(before, has_step).wrong
    return changed_in_words(path, wrong) if wrong else None


def _log(content: bytes, understood: Understood) -> Log:
    lines = content.split(b"\n")[:-1]
    records: list[Record] = []
    damaged = []
    for number, line in enumerate(lines, 1):
        try:
            record = decoded(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            record.pop(SEAL, None)
        if isinstance(record, dict) and understood(record):
            records.append(record)
        else:
            damaged.append(number)
    return Log(records, damaged, changed_lines(lines), all(map(is_sealed, lines)))


def _bytes(path: Path) -> bytes:
    try:
        with open_unlinked(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
