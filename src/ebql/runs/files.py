"""Atomic file writing: write a temporary file, flush it to disk, and rename it."""

import csv
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from ebql.errors import OutputError, RunError, UserError

PARTIAL = ".partial"
"""How the names of unfinished files end; they begin with a dot."""


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


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk: without it, a power cut can undo a rename or lose a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn an `OSError` that nobody has explained into a `RunError` of one line."""
    try:
        yield
    except OSError as error:
        if isinstance(
            error, UserError | BrokenPipeError
        ):  # the latter is about the terminal, not about files
            raise
        where = "" if error.filename is None else f" {str(error.filename)!r}"
        raise RunError(f"Cannot read or write{where}: {error.strerror or error}.") from error


def cannot_write(path: Path, error: OSError) -> OutputError:
    """Return the error for a file that cannot be written."""
    return OutputError(error.errno, f"Cannot write {str(path)!r}: {error.strerror}.")


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write `content` to `path` atomically: after a crash or a power cut, it is the old or the new file."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}{PARTIAL}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):  # the first error is the one to tell
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
