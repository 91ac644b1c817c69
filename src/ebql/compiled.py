"""The one place that asks numba to compile, so that every kernel is compiled alike.

numba caches machine code on disk. On its own it checks only the file that holds a function, so a caller
would keep running the old code of a function that it calls from another file. Here a cached function is
recompiled whenever its file, or any `ebql` module that this file imports, has changed.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Event, Listener, install_listener

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent
_IMPORT = re.compile(r"^(?:from|import) +(ebql[\w.]*)(?: +import +(\([^)]*\)|.*))?", re.MULTILINE)


def compiled(function: F) -> F:
    """Compile `function` to machine code that releases the GIL, cached on disk between processes.

    Releasing the GIL lets plain threads run independent seeds in parallel. Each seed has its own NumPy
    `Generator`, so results do not depend on the number of threads.
    """
    return _jit(function)


def inlined(function: F) -> F:
    """Compile like `compiled`, and inline the code into every compiled caller.

    Use it for the small functions of a hot loop. Every array passed across a call costs an atomic update
    of its reference count.
    """
    return _jit(function, inline="always")


def reordered(function: F) -> F:
    """Compile like `compiled`, and let a sum add its terms in any order, several at a time."""
    return _jit(function, fastmath={"reassoc", "nsz", "contract"})


def _jit(function: F, **options: Any) -> F:
    """Compile `function`, with the disk cache if numba can write one and its source stamp can be extended.

    numba writes to `__pycache__`, or to a cache folder of the user where the package is read-only.
    """
    try:
        dispatcher = numba.njit(cache=True, nogil=True, **options)(function)
        index = dispatcher._cache._cache_file
        index._source_stamp = index._source_stamp, _sources_hash(Path(inspect.getfile(function)))
    except (AttributeError, RuntimeError):  # another numba, or no folder to write to: better slow than stale
        dispatcher = numba.njit(nogil=True, **options)(function)
    return cast(F, dispatcher)


@cache
def _sources_hash(path: Path) -> str:
    """Return a hash of the source file at `path` and of all `ebql` files it imports, also indirectly."""
    sources: set[Path] = set()
    pending = [path]
    while pending:
        source = pending.pop()
        if source not in sources:
            sources.add(source)
            pending += _imported_files(source)
    digests = [sha256(source.read_bytes()).digest() for source in sorted(sources)]
    return sha256(b"".join(digests)).hexdigest()


@cache
def _imported_files(path: Path) -> list[Path]:
    """Return the files of the `ebql` modules that the source file at `path` imports at its top level."""
    modules: list[Path] = []
    for name, imported in _IMPORT.findall(path.read_text(encoding="utf-8")):
        module = _PACKAGE.parent.joinpath(*name.split("."))
        # An imported name can be a module, too.
        modules += [module, *(module / word for word in re.findall(r"\w+", imported))]
    files = [file for module in modules for file in (module.with_suffix(".py"), module / "__init__.py")]
    return [file for file in files if file.is_file()]


@contextmanager
def announced_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once, just before a function is compiled inside the context; never if all are cached."""
    with install_listener("numba:compile", _FirstCompilation(tell)):
        yield


class _FirstCompilation(Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell, self._told = tell, False

    def on_start(self, event: Event) -> None:  # noqa: ARG002 - numba's interface
        if not self._told:
            self._told = True
            self._tell()

    def on_end(self, event: Event) -> None:
        pass
