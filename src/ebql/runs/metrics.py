"""A run's measurements: one JSON object a line, appended as they come."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ebql.errors import InputError


class MetricsLog:
    """Appends records to a file; each is with the system once `append` returns, so a kill loses none.

    A checkpoint keeps `position()`. Resuming from it opens the log at that position and drops what was
    written after: the records are then made again, and the file ends as if nothing had happened.
    """

    def __init__(self, path: str | Path, position: int) -> None:
        """Open `path`, made if need be, and drop what lies beyond `position`: 0, or a checkpoint's."""
        self._file = Path(path).open("ab")  # noqa: SIM115 - closed by close()
        length = self._file.tell()
        if length < position:
            self._file.close()
            raise InputError(
                f"{str(path)!r} has {length} bytes, but its checkpoint was saved after {position}: "
                "the end of the file is lost."
            )
        self._file.truncate(position)
        self._file.seek(position)

    @classmethod
    def continued(cls, path: str | Path) -> Self:
        """Open `path`, made if need be, after its last whole line; half a line was cut off by a crash."""
        content = Path(path).read_bytes() if Path(path).exists() else b""
        return cls(path, content.rfind(b"\n") + 1)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one record; NaN and infinity, which JSON lacks, are refused: use None."""
        line = json.dumps(record, allow_nan=False, ensure_ascii=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def position(self) -> int:
        """Return the length of the log in bytes, once all of it has reached the disk."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Return the records of a log; half a line at the end (it may be growing) is left out.

    A line that is no JSON object is refused.
    """
    content = Path(path).read_bytes()
    return _records(path, content[: content.rfind(b"\n") + 1])


def last_records(path: str | Path, size: int = 4096) -> list[dict[str, Any]]:
    """Return the whole records among the last `size` bytes of a log; none if there is no log."""
    try:
        with Path(path).open("rb") as file:
            start = max(file.seek(0, os.SEEK_END) - size, 0)
            file.seek(start)
            content = file.read()
    except FileNotFoundError:
        return []
    first = content.find(b"\n") + 1 if start else 0
    return _records(path, content[first : content.rfind(b"\n") + 1])


def _records(path: str | Path, lines: bytes) -> list[dict[str, Any]]:
    records = []
    for line in lines.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            shown = line[:40].decode(errors="replace")
            raise InputError(f"{str(path)!r} is damaged: a line of it is no record: {shown!r}.")
        records.append(record)
    return records
