"""Files that appear whole or not at all, and that stay inside their folder."""

import csv
import errno
import io
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from uuid import uuid4

from ebql.errors import InputError, OutputError, RunError, UserError

PARTIAL = ".partial"
"""How the names of unfinished files end; they begin with a dot."""
# Control characters except tab and line feed, and those that turn the direction of text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# A spreadsheet takes a cell that begins with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def output_folder(path: str | Path) -> Path:
    """Create the folder `path` if necessary; raise a one-line error if it cannot be written.

    >>> output_folder("runs/new").is_dir()
    True
    """
    folder = Path(path)
    try:
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for created in missing:
            sync_folder(created.parent)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            error.errno, f"Cannot write to the folder {str(folder)!r}: {error.strerror}."
        ) from error
    return folder


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk: without it, a power cut can undo a rename or lose a new file."""
    if os.name == "nt":  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turn an `OSError` that nobody has explained into one line: a `RunError`, or bad input.

    >>> try:
    ...     with errors_in_one_line():
    ...         open("gone.json")
    ... except RunError as error:
    ...     print(error)
    Cannot read or write 'gone.json': No such file or directory.
    """
    try:
        yield
    except OSError as error:
        if isinstance(
            error, UserError | BrokenPipeError
        ):  # the latter is about the terminal, not about files
            raise
        where = "" if error.filename is None else f" {str(error.filename)!r}"
        kind = InputError if error.errno == errno.ENAMETOOLONG else RunError
        raise kind(f"Cannot read or write{where}: {error.strerror or error}.") from error


def cannot_write(path: Path, error: OSError) -> OutputError:
    """Return the error for a file that cannot be written."""
    return OutputError(error.errno, f"Cannot write {str(path)!r}: {error.strerror}.")


def open_unlinked(path: Path, mode: str) -> BinaryIO:
    """Open a binary file, but never through a symbolic link: it could lead out of a stranger's folder."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)

    try:
        return open(path, mode, opener=opener)  # type: ignore[return-value]
    except OSError as error:
        if error.errno == errno.ELOOP:
            refuse_link(path)
        raise


def refuse_link(path: Path) -> NoReturn:
    """Raise the error for a symbolic link where a run has a file or folder of its own."""
    raise InputError(f"{str(path)!r} is a symbolic link: the files of a run must be in its own folder.")


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Raise an error if an entry of `folder` with one of these names is a symbolic link."""
    for name in names:
        if (folder / name).is_symlink():
            refuse_link(folder / name)


def decoded(content: bytes | str) -> Any:
    """Return JSON as Python values; whatever is wrong with it raises a `ValueError`."""
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write `content` to `path` atomically: after a crash or a power cut, it is the old or the new file.

    >>> write_bytes("weights.bin", b"12").read_bytes()
    b'12'
    """
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
    """Write `content` to `path` as UTF-8, atomically.

    >>> write_text("notes.txt", "γ = 0.99").stat().st_size  # bytes
    9
    """
    return write_bytes(path, content.encode())


def write_json(path: str | Path, content: Any) -> Path:
    """Write `content` to `path` as indented JSON; raise an error for NaN and infinity, which JSON lacks.

    >>> print(write_json("about.json", {"agent": "ebql"}).read_text(), end="")
    {
      "agent": "ebql"
    }
    """
    return write_text(path, json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def write_csv(path: str | Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a header line and `rows` to `path` as CSV; floats keep nine significant digits.

    Text that a spreadsheet would take for a formula, such as a label that begins with =, gets a quote before.
    Control characters are written out: `cat` would send them to the terminal.

    >>> print(write_csv("scores.csv", ["agent", "score"], [["ebql", 1 / 3]]).read_text(), end="")
    agent,score
    ebql,0.333333333
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(_cell, row) for row in rows)
    return write_text(path, text.getvalue())


def _cell(value: object) -> object:
    if isinstance(value, float):
        return format(value, ".9g")
    if isinstance(value, str):
        return f"'{visible(value)}" if value.startswith(_FORMULA) else visible(value)
    return value


def unquoted(cell: str) -> str:
    """Return the text that `write_csv` wrote as `cell`: without the quote before a formula."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def visible(text: str) -> str:
    """Return text with its control characters written out as in a Python string."""
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
