"""The one place where numba is asked to compile, so that every kernel is compiled alike."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

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
