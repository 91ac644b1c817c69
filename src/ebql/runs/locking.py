"""Locks that die with the process that holds them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebql.errors import InputError
from ebql.runs.files import cannot_write

_BETWEEN_LOOKS = 0.5


@contextmanager
def exclusive(path: Path, refusal: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path`; a second process is refused after `patience` seconds of waiting.

    The system lets go of a dead process's lock: at once on one machine; on NFS, where the server holds
    it, when the dead machine's lease has run out.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows: two writers there are the user's own doing
        yield
        return
    until = time.monotonic() + patience
    try:
        opened = path.open("ab")
    except OSError as error:
        raise cannot_write(path, error) from error
    with opened as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    raise InputError(refusal) from error
                time.sleep(_BETWEEN_LOOKS)
        yield
