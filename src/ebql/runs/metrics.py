"""The metrics of a run: one JSON object per line, appended during the run."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ebql.errors import InputError


class MetricsLog:
    """Appends records to a file. After `append` returns, killing the process does not lose the record.

    A checkpoint stores `position()`. A resumed run opens the log at that position and discards later records;
    it then writes them again, so the final file does not depend on interruptions.
    """

    def __init__(self, path: str | Path, position: int) -> None:
        """Open or create `path` and discard everything after `position` (0, or that of a checkpoint)."""
        self._file = Path(path).open("ab")  # noqa: SIM115 - closed by close()
        length = self._file.tell()
        if length < position:
            self._file.close()
            raise InputError(
                f"{str(path)!r} has only {length} bytes, but its checkpoint was saved at {position}: "
                "the end of the file is lost."
            )
        self._file.truncate(position)
        self._file.seek(position)

    @classmethod
    def continued(cls, path: str | Path) -> Self:
        """Open or create `path` after its last complete line; a crash can leave an incomplete one."""
        content = Path(path).read_bytes() if Path(path).exists() else b""
        return cls(path, content.rfind(b"\n") + 1)

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record; raise an error for NaN and infinity, which JSON lacks (use None)."""
        line = json.dumps(record, allow_nan=False, ensure_ascii=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()

    def position(self) -> int:
        """Flush the log to disk and return its length in bytes."""
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
    """Return the records of a log, without an incomplete last line of a run in progress.

    Raises an error if a line is not a JSON object.
    """
    content = Path(path).read_bytes()
    return _records(path, content[: content.rfind(b"\n") + 1])


def last_records(path: str | Path, size: int = 4096) -> list[dict[str, Any]]:
    """Return the complete records in the last `size` bytes of a log; none if there is no log."""
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
        except (ValueError, RecursionError):  # too deeply nested
            record = None
        if not isinstance(record, dict):
            shown = line[:40].decode(errors="replace")
            raise InputError(f"{str(path)!r} is damaged: this line is not a record: {shown!r}.")
        records.append(record)
    return records
