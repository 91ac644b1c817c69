"""Atomic file writing: write a temporary file, flush it to disk, and rename it."""

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
    """Create the folder `path` if necessary; raise a one-line error if it cannot be written."""
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
    """Return the error for a file that cannot be written."""
    return OutputError(error.errno, f"Cannot write {str(path)!r}: {error.strerror}.")


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write `content` to `path` atomically: even after a crash, the file is the old or the new one."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.partial")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise
    return path


def write_text(path: str | Path, content: str) -> Path:
    """Write `content` to `path` as UTF-8, atomically."""
    return write_bytes(path, content.encode())


def write_json(path: str | Path, content: Any) -> Path:
    """Write `content` to `path` as indented JSON; raise an error for NaN and infinity, which JSON lacks."""
    return write_text(path, json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a header line and `rows` to `path` as CSV; floats keep nine significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([format(x, ".9g") if isinstance(x, float) else x for x in row] for row in rows)
    return write_text(path, text.getvalue())
