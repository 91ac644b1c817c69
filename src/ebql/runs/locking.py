"""File locks that end with the process that holds them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebql.errors import InputError, OutputError
from ebql.runs.files import cannot_write, open_unlinked

_RETRY_SECONDS = 0.5


@contextmanager
def exclusive(path: Path, refusal: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path`; if another process holds it for `patience` seconds, raise `refusal`.

    The system releases the lock of a dead process: at once on the same machine, and on NFS after the lease of
    the dead machine has expired.

    >>> with exclusive(Path("lock"), "Somebody else is at work."):
    ...     print("nobody else is")
    nobody else is
    """
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl: runs are not locked there
        yield
        return
    deadline = time.monotonic() + patience
    try:
        opened = open_unlinked(path, "ab")
    except OSError as error:
        raise cannot_write(path, error) from error
    with opened as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise InputError(refusal) from error
                time.sleep(_RETRY_SECONDS)
            except OSError as error:  # some network file systems have no locks
                raise OutputError(
                    error.errno,
                    f"Cannot lock {str(path)!r}: {error.strerror}. Choose a folder on another disk.",
                ) from error
        yield
