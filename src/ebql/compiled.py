"""The one place where numba is asked to compile, so that every kernel is compiled alike."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Event, Listener, install_listener

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile `function` to machine code that releases the GIL, cached on disk between processes.

    Releasing the GIL lets plain threads run independent seeds in parallel, each with a NumPy
    `Generator` of its own, so results do not depend on the number of threads.
    """
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def inlined(function: F) -> F:
    """Compile like `compiled`, and merge the code into every compiled caller.

    For the small functions of a hot loop: passed across a call, each array costs an atomic count of its
    references.
    """
    return cast(F, numba.njit(cache=True, nogil=True, inline="always")(function))


@contextmanager
def compilation_told(tell: Callable[[], None]) -> Iterator[None]:
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
