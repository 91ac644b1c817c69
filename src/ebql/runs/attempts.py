"""Who worked on a run, from which step, and how each attempt ended: what a study's status is made of."""

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
from ebql.runs.metrics import MetricsLog, read_metrics

HEARTBEAT_SECONDS = 5.0
STARTED, DONE, STOPPED, FAILED = "started", "done", "stopped", "failed"


class Attempts:
    """`attempts.jsonl` of a run's folder: one line when an attempt starts and one when it ends.

    While an attempt lasts, the file's modification time is its heartbeat, so that a machine that sees only
    the files can tell a run at work from one whose process is gone.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / "attempts.jsonl"

    def read(self) -> list[dict[str, Any]]:
        """Return the events so far, oldest first."""
        return read_metrics(self.path) if self.path.exists() else []

    def silence(self) -> float:
        """Return the seconds since the last heartbeat or event; infinite if there was none."""
        try:
            return time.time() - self.path.stat().st_mtime
        except FileNotFoundError:
            return float("inf")

    def append(self, event: str, **about: Any) -> None:
        """Add one event; the folder is made if need be."""
        output_folder(self.path.parent)
        with MetricsLog.continued(self.path) as log:
            log.append({"event": event, "time": time.time(), **about})

    def close_after_death(self, event: str, reason: str) -> None:
        """End an attempt whose process could not; one that did is left as it is."""
        events = self.read()
        if not events or events[-1]["event"] == STARTED:
            self.append(event, reason=reason)

    @contextmanager
    def attempt(self, step: int, where: Mapping[str, Any]) -> Iterator[None]:
        """Log an attempt that goes on from `step`, with its heartbeat, and how it ends."""
        self.append(STARTED, step=step, host=socket.gethostname(), pid=os.getpid(), **where)
        ended = threading.Event()
        threading.Thread(target=self._beat, args=(ended,), daemon=True).start()
        try:
            yield
        except KeyboardInterrupt as interrupt:
            ended.set()
            self.append(STOPPED, reason=_short(interrupt))
            raise
        except BaseException as error:
            ended.set()
            with suppress(OSError):  # a full disk may be why the run failed
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


def one_line(error: BaseException) -> str:
    """Return an error as one line: its message; if it is a bug's, its type too."""
    told = " ".join(str(error).split())
    return told if isinstance(error, UserError) else f"{type(error).__name__}: {told}"


def _short(interrupt: KeyboardInterrupt) -> str:
    """Return where a run stopped, without the advice how to go on, which is the sweep's to give."""
    return f"{str(interrupt).partition(';')[0] or 'Stopped before it began'}."
