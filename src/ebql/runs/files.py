"""Whole files: each is written beside its place, flushed to disk and renamed over it."""

import csv
import io
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from ebql.errors import OutputError


def output_folder(path: str | Path) -> Path:
    """Create the folder `path` if need be, and refuse it with one clear line if it can't be written."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            error.errno, f"Cannot write to the folder {str(folder)!r}: {error.strerror}."
        ) from error
    return folder


def cannot_write(path: Path, error: OSError) -> OutputError:
    """Return the error for a file that the system does not let us write."""
    return OutputError(error.errno, f"Cannot write {str(path)!r}: {error.strerror}.")


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write `content` to `path`; a reader, or a crash, sees the old file or the new one, never half."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{uuid4().hex}.partial")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise
    return path


def write_text(path: str | Path, content: str) -> Path:
    """Write `content` to `path` as UTF-8, whole or not at all."""
    return write_bytes(path, content.encode())


def write_json(path: str | Path, content: Any) -> Path:
    """Write `content` to `path` as indented JSON; NaN and infinity, which JSON lacks, are refused."""
    return write_text(path, json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a header line and `rows` to `path` as CSV; floats keep nine significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([format(x, ".9g") if isinstance(x, float) else x for x in row] for row in rows)
    return write_text(path, text.getvalue())
