"""Logs of JSON records that grow while they are read; each read continues where the last one ended."""

import json
import time
from array import array
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CHUNK = 1 << 20  # bytes; other requests get their turn between two chunks


class GrowingLog:
    """The numbers of a log as columns: for each metric, the steps at which it was recorded and its values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        """Lines that are not records; they are left out."""
        self._offset = 0
        self._columns: dict[str, tuple[array[float], array[float]]] = {}
        self._lock = Lock()

    def read(self, seconds: float) -> float:
        """Read what is new, for about so many seconds; return the share of the file that has been read."""
        until = time.monotonic() + seconds
        with self._lock:
            try:
                size = self.path.stat().st_size
                if size < self._offset:  # a resumed run starts again from its checkpoint
                    self._offset, self.damaged, self._columns = 0, 0, {}
                with self.path.open("rb") as file:
                    file.seek(self._offset)
                    while self._read_chunk(file.read(_CHUNK)) and time.monotonic() < until:
                        file.seek(self._offset)
            except FileNotFoundError:
                return 1.0
            return self._offset / size if size else 1.0

    def _read_chunk(self, content: bytes) -> bool:
        """Add the complete lines of a chunk to the columns; return whether there was one."""
        end = content.rfind(b"\n") + 1
        if not end and len(content) == _CHUNK:  # a line longer than a chunk is no record
            end, self.damaged = len(content), self.damaged + 1
            content = b""
        self._offset += end
        self._add(content[:end].splitlines())
        return end > 0

    def _add(self, lines: list[bytes]) -> None:
        records = self._records(lines)
        for name in {name: None for record in records for name in record}:
            if name == "step":
                continue
            points = [
                (record["step"], np.nan if (value := record[name]) is None else value)
                for record in records
                if name in record
            ]
            numbers = [point for point in points if isinstance(point[1], int | float)]
            if numbers:
                steps, values = self._columns.setdefault(name, (array("d"), array("d")))
                steps.extend(step for step, _ in numbers)
                values.extend(value for _, value in numbers)

    def _records(self, lines: list[bytes]) -> list[dict[str, Any]]:
        try:  # all lines at once are twice as fast
            found = json.loads(b"[" + b",".join(lines) + b"]")
        except (ValueError, RecursionError):
            found = [_parsed(line) for line in lines]
        records = [one for one in found if isinstance(one, dict) and isinstance(one.get("step"), int)]
        self.damaged += len(lines) - len(records)
        return records

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics read so far."""
        return list(self._columns)

    def column(self, metric: str) -> tuple[Floats, Floats]:
        """Return the steps and the values of a metric, (T,), without missing ones."""
        with self._lock:
            steps, values = self._columns.get(metric, (array("d"), array("d")))
            x, y = np.array(steps, np.float64), np.array(values, np.float64)
        known = np.isfinite(y)
        return x[known], y[known]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
