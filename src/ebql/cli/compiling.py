"""Say that numba is compiling, which happens once and can take half a minute."""

from collections.abc import Iterator
from contextlib import contextmanager

from ebql.terminal.console import Console


@contextmanager
def compiling_told(console: Console) -> Iterator[None]:
    """Print one line if the tabular kernel must be compiled; nothing if it is cached."""
    from ebql.compiled import compilation_told

    told = "compiling the tabular kernel once (some 20 s); later runs start at once"
    with compilation_told(lambda: console.print(told, highlight=False, soft_wrap=True)):
        yield
