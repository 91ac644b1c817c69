"""Where the runs of a study are performed: the seam, and processes of this machine."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Protocol

from ebql.errors import InputError
from ebql.runs import Attempts
from ebql.studies.tasks import Task

Tick = Callable[[], None]

_BETWEEN_LOOKS = 0.2


class Runner(Protocol):
    """Performs runs, some at a time."""

    def run(self, tasks: Sequence[Task], tick: Tick) -> None:
        """Perform every task; one that fails leaves its reason in its folder, and the others go on.

        `tick` is called several times a second. A `KeyboardInterrupt` lets the runs at work save a
        checkpoint, and comes out again once they have; a second one ends them at once.
        """
        ...


@dataclass(frozen=True)
class LocalRunner:
    """Processes of this machine, one a run, so many at a time."""

    workers: int

    def run(self, tasks: Sequence[Task], tick: Tick) -> None:
        """Perform every task, in order, each in a process of its own."""
        waiting, at_work = list(reversed(tasks)), list[_Worker]()
        try:
            while waiting or at_work:
                while waiting and len(at_work) < self.workers:
                    at_work.append(_Worker(waiting.pop()))
                at_work = [worker for worker in at_work if not worker.ended()]
                tick()
                time.sleep(_BETWEEN_LOOKS)
        except KeyboardInterrupt:
            _stop(at_work, tick)
            raise
        except BaseException:  # whatever it is, no run shall lose its steps for it
            _stop(at_work, lambda: None)
            raise
        finally:
            for worker in at_work:
                worker.kill()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local_runner(workers: int | None, cpus: int) -> LocalRunner:
    """Return a runner of `workers` processes; by default as many runs of `cpus` cores as fit the machine."""
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    return LocalRunner(workers or max(1, cores() // cpus))


def _stop(at_work: Sequence["_Worker"], tick: Tick) -> None:
    """Ask the workers to save a checkpoint and end, and wait until they have."""
    for worker in at_work:
        worker.ask_to_stop()
    while at_work:
        at_work = [worker for worker in at_work if not worker.ended()]
        tick()
        time.sleep(_BETWEEN_LOOKS)


class _Worker:
    """The process of one task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._told: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        threads = str(max(task.cpus, 1))
        given = {name: os.environ.get(name, threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ebql.studies.worker"],
            stdin=subprocess.PIPE,  # open as long as this process lives: how the worker knows
            stdout=self._told,
            stderr=self._told,
            env={**os.environ, **given},
            start_new_session=True,  # a Ctrl-C in the terminal is for us to pass on
        )
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(task.to_json()).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # it is dead already: `ended` will say why
            pass

    def ask_to_stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def ended(self) -> bool:
        """Whether the process is gone; what it could not say itself is then written to the run's folder."""
        code = self._process.poll()
        if code is None:
            return False
        if code == -signal.SIGTERM:
            self._log_end("stopped", "Stopped before it began.")
        elif code:
            self._log_end("failed", self._reason(code))
        self._close()
        return True

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            self._log_end("stopped", "Ended at once, after its last checkpoint.")
        self._close()

    def _log_end(self, event: str, reason: str) -> None:
        with suppress(InputError, OSError):  # a damaged log, or a full disk, is no reason to stop other runs
            Attempts(self._task.folder).close_after_death(event, reason)

    def _reason(self, code: int) -> str:
        if code < 0:
            name = signal.Signals(-code).name
            hint = ": was there too little memory?" if name == "SIGKILL" else "."
            return f"Its process was ended by {name}{hint}"
        self._told.seek(0)
        lines = self._told.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"Its process ended with code {code}."

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._told.close()
