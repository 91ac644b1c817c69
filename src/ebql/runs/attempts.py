"""The attempts of a run: which process worked on it, from which step, and how each attempt ended."""

import os
import socket
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ebql.errors import UserError
from ebql.runs.files import output_folder, write_text
from ebql.runs.metrics import MetricsLog, Record, read_intact

HEARTBEAT_SECONDS = 5.0
STARTED, DONE, STOPPED, FAILED = "started", "done", "stopped", "failed"


class Attempts:
    """`attempts.jsonl` in the folder of a run: one line when an attempt starts and one when it ends.

    During an attempt, the modification time of the file is the heartbeat. A machine that sees only the files
    can thus distinguish an active run from one whose process has died.

    >>> attempts = Attempts("runs/first")
    >>> with attempts.attempt(step=0, where={}):
    ...     pass  # the work
    >>> [event["event"] for event in attempts.read()]
    ['started', 'done']
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / "attempts.jsonl"

    def read(self) -> list[dict[str, Any]]:
        """Return all events, oldest first; damaged ones are left out with a warning."""
        return read_intact(self.path, _is_event)

    def silence(self) -> float:
        """Return the seconds since the last heartbeat or event; infinity if there was none.

        They are negative if the clock of the machine that wrote it is ahead of this one's.
        """
        try:
            return time.time() - self.path.stat().st_mtime
        except FileNotFoundError:
            return float("inf")

    def append(self, event: str, **about: Any) -> None:
        """Append one event; create the folder if necessary."""
        output_folder(self.path.parent)
        with MetricsLog.continued(self.path) as log:
            log.append({"event": event, "time": time.time(), **about})

    def close_after_death(self, event: str, reason: str) -> None:
        """Log the end of an attempt whose process died before it could; otherwise do nothing."""
        events = self.read()
        if not events or events[-1]["event"] == STARTED:
            self.append(event, reason=reason)

    @contextmanager
    def attempt(self, step: int, where: Mapping[str, Any]) -> Iterator[None]:
        """Log an attempt that starts at `step`, keep its heartbeat, and log how it ends."""
        self.append(STARTED, step=step, host=socket.gethostname(), pid=os.getpid(), **where)
        ended = threading.Event()
        threading.Thread(target=self._beat, args=(ended,), daemon=True).start()
        try:
            yield
        except KeyboardInterrupt as interrupt:
            ended.set()
            self.append(STOPPED, reason=_stop_reason(interrupt))
            raise
        except BaseException as error:
            ended.set()
            with suppress(OSError):  # a full disk may be the reason of the failure
                if not isinstance(error, UserError):
                    write_text(self.path.parent / "failure.txt", traceback.format_exc())
                self.append(FAILED, reason=one_line(error))
            raise
        ended.set()
        self.append(DONE)

    def _beat(self, ended: threading.Event) -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            with suppress(OSError):
                os.utime(self.path)


def _is_event(record: Record) -> bool:
    """Whether a record is an event with all that readers need to know about it."""
    event = record.get("event")
    if event in (STOPPED, FAILED):
        return isinstance(record.get("reason"), str)
    return event in (STARTED, DONE) and isinstance(record.get("host", ""), str)


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line, preceded by its type unless it is a `UserError`.

    >>> one_line(KeyError("observation"))
    "KeyError: 'observation'"
    """
    message = " ".join(str(error).split())
    return message if isinstance(error, UserError) else f"{type(error).__name__}: {message}"


def _stop_reason(interrupt: KeyboardInterrupt) -> str:
    """Return where a run stopped, without the advice on how to resume it."""
    return f"{str(interrupt).partition(';')[0] or 'Stopped before it began'}."
