"""Say that numba is compiling, which happens once and can take half a minute."""

from collections.abc import Iterator
from contextlib import contextmanager

from ebql.terminal.console import Console


@contextmanager
def announced_compiling(console: Console) -> Iterator[None]:
    """Print one line if a kernel must be compiled; nothing if all are cached."""
    from ebql.compiled import announced_compilation

    line = "compiling once (up to some 20 s); later runs start at once"
    with announced_compilation(lambda: console.print(line, highlight=False, soft_wrap=True)):
        yield
