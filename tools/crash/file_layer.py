"""A patched file layer: it numbers the file operations of this process below one folder, and acts on each.

Python's own functions are replaced (`open`, `os.rename`, `os.fsync`, …), so a case needs no privileges and
runs at full speed. Files opened for writing get a raw file whose `write` and `truncate` are operations of
their own, below Python's buffer: that is where the system sees them. Only operations of the main thread are
numbered, since those of other threads (TensorBoard events, heartbeats) have no fixed order.
"""

import builtins
import fcntl
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KILLED = 137
"""The exit code of a process that the layer has killed."""

# The originals: the layer itself, and whoever looks at the disk behind its back, use these.
real_open = io.open
_NAMES = ("open", "mkdir", "rename", "replace", "link", "unlink", "remove", "rmdir", "fsync", "write")
real_os = {name: getattr(os, name) for name in (*_NAMES, "listdir", "scandir")}
_real_flock = fcntl.flock
_CHANGES = os.O_CREAT | os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Operation:
    """One file operation."""

    number: int
    """From 1 on."""
    name: str
    path: str


Whole = Callable[[], Any]
"""Perform the operation."""
Part = Callable[[], Any] | None
"""Perform half of it; None if it is atomic."""
Act = Callable[[Operation, Whole, Part], Any]
"""What to do with an operation; it returns what the operation returns."""


def die() -> None:
    """End this process as SIGKILL would: no buffer is flushed, no handler runs."""
    os._exit(KILLED)


class FileLayer:
    """Numbers the operations below `root` and passes each to `act`; with `reads`, also mere reading."""

    def __init__(self, root: str | Path, act: Act, *, reads: bool = False) -> None:
        self.root = os.path.realpath(root)
        self.n_operations = 0
        self._act, self._reads = act, reads
        self._acting = False

    def perform(self, name: str, path: Any, whole: Whole, part: Part = None) -> Any:
        """Perform one operation as `act` says, if it counts; else as it is."""
        place = _absolute(path)
        if self._acting or not self._counts(place):
            return whole()
        self.n_operations += 1
        self._acting = True  # whatever `act` itself does with files is none of the program's operations
        try:
            return self._act(Operation(self.n_operations, name, place), whole, part)
        finally:
            self._acting = False

    def _counts(self, place: str) -> bool:
        if threading.current_thread() is not threading.main_thread():
            return False
        inside = place == self.root or place.startswith(self.root + os.sep)
        return inside and f"{os.sep}events" not in place[len(self.root) :]

    @contextmanager
    def installed(self) -> Iterator["FileLayer"]:
        """Replace Python's functions by numbered ones."""
        patched: list[tuple[Any, str, Any]] = [
            (io, "open", self._open),
            (builtins, "open", self._open),
            (os, "open", self._os_open),
            (os, "mkdir", self._one_path("mkdir")),
            (os, "rmdir", self._one_path("rmdir")),
            (os, "unlink", self._one_path("unlink")),
            (os, "remove", self._one_path("remove")),
            (os, "rename", self._two_paths("rename")),
            (os, "replace", self._two_paths("replace")),
            (os, "link", self._two_paths("link")),
            (os, "fsync", self._descriptor("fsync")),
            (os, "write", self._os_write),
            (fcntl, "flock", self._flock),
        ]
        if self._reads:
            patched += [(os, "listdir", self._listing("listdir")), (os, "scandir", self._listing("scandir"))]
        before = [(owner, name, getattr(owner, name)) for owner, name, _ in patched]
        for owner, name, function in patched:
            setattr(owner, name, function)
        try:
            yield self
        finally:
            for owner, name, function in before:
                setattr(owner, name, function)

    def _open(self, file: Any, mode: str = "r", buffering: int = -1, *args: Any, **more: Any) -> Any:
        def plain() -> Any:
            return real_open(file, mode, buffering, *args, **more)

        reading = not set(mode) & set("wxa+")
        if isinstance(file, int) or (reading and not self._reads):
            return plain()
        if reading or more.get("opener") is not None or "b" not in mode or buffering == 0:
            return self.perform("read" if reading else "open", file, plain)
        raw = self.perform("open", file, lambda: _RawFile(self, os.fspath(file), mode.replace("b", "")))
        return io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)

    def _os_open(self, path: Any, flags: int, *args: Any, **more: Any) -> int:
        def plain() -> Any:
            return real_os["open"](path, flags, *args, **more)

        if not flags & _CHANGES and not self._reads:
            return int(plain())
        return int(self.perform("open" if flags & _CHANGES else "read", _at(path, more.get("dir_fd")), plain))

    def _os_write(self, descriptor: int, content: Any) -> int:
        write, half = real_os["write"], bytes(content)[: len(content) // 2]
        return int(
            self.perform(
                "write",
                _place(descriptor),
                lambda: write(descriptor, content),
                (lambda: write(descriptor, half)) if half else None,
            )
        )

    def _one_path(self, name: str) -> Callable[..., Any]:
        def call(path: Any, *args: Any, dir_fd: int | None = None, **more: Any) -> Any:
            def whole() -> Any:
                return real_os[name](path, *args, dir_fd=dir_fd, **more)

            return self.perform(name, _at(path, dir_fd), whole)

        return call

    def _two_paths(self, name: str) -> Callable[..., Any]:
        def call(source: Any, target: Any, **more: Any) -> Any:
            return self.perform(name, target, lambda: real_os[name](source, target, **more))

        return call

    def _descriptor(self, name: str) -> Callable[..., Any]:
        def call(descriptor: Any) -> Any:
            return self.perform(name, _place(descriptor), lambda: real_os[name](descriptor))

        return call

    def _listing(self, name: str) -> Callable[..., Any]:
        def call(path: Any = ".") -> Any:
            place = _place(path) if isinstance(path, int) else path
            return self.perform("list", place, lambda: real_os[name](path))

        return call

    def _flock(self, file: Any, operation: int) -> None:
        self.perform("lock", _place(file), lambda: _real_flock(file, operation))


class _RawFile(io.FileIO):
    """A file opened for writing, each of whose writes is an operation of the layer."""

    def __init__(self, layer: FileLayer, path: str, mode: str) -> None:
        super().__init__(path, mode)
        self._layer, self._path = layer, path

    def write(self, content: Any, /) -> int:
        half = bytes(content)[: len(content) // 2]
        write = super().write
        written = self._layer.perform(
            "write", self._path, lambda: write(content), (lambda: write(half)) if half else None
        )
        return int(written)

    def truncate(self, size: int | None = None, /) -> int:
        truncate = super().truncate
        return int(self._layer.perform("truncate", self._path, lambda: truncate(size)))


def _at(path: Any, dir_fd: int | None) -> Any:
    """Return the path of a name that is relative to an open folder, as `shutil.rmtree` gives it."""
    return path if dir_fd is None else os.path.join(_place(dir_fd), os.fspath(path))


def _place(file: Any) -> str:
    """Return the path of an open file."""
    descriptor = file if isinstance(file, int) else file.fileno()
    return os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)")


def _absolute(path: Any) -> str:
    """Return an absolute path without following the last link; the roots of the campaign are real paths."""
    return os.path.abspath(os.fsdecode(path))
