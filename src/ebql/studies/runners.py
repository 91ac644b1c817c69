"""Runners perform the runs of a study: their interface, and the one that uses processes of this machine."""

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

_POLL_SECONDS = 0.2


class Runner(Protocol):
    """Performs runs, several at a time."""

    def run(self, tasks: Sequence[Task], tick: Tick) -> None:
        """Perform every task; a failed task leaves its reason in its folder, and the others continue.

        `tick` is called several times a second. After a `KeyboardInterrupt` the active runs save a
        checkpoint, and the exception is raised again; a second one ends them at once.
        """
        ...


@dataclass(frozen=True)
class LocalRunner:
    """Performs each run in its own process on this machine, `workers` of them at a time."""

    workers: int

    def run(self, tasks: Sequence[Task], tick: Tick) -> None:
        """Perform every task, in order."""
        waiting, active = list(reversed(tasks)), list[_Worker]()
        try:
            while waiting or active:
                while waiting and len(active) < self.workers:
                    active.append(_Worker(waiting.pop()))
                active = [worker for worker in active if not worker.ended()]
                tick()
                time.sleep(_POLL_SECONDS)
        except KeyboardInterrupt:
            _stop(active, tick)
            raise
        except BaseException:  # whatever went wrong here, no run should lose its steps
            _stop(active, lambda: None)
            raise
        finally:
            for worker in active:
                worker.kill()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local_runner(workers: int | None, cpus: int) -> LocalRunner:
    """Return a runner of `workers` processes; by default as many as the machine has room for."""
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    return LocalRunner(workers or max(1, cores() // cpus))


def _stop(active: Sequence["_Worker"], tick: Tick) -> None:
    """Ask the workers to save a checkpoint and exit, and wait for them."""
    for worker in active:
        worker.ask_to_stop()
    while active:
        active = [worker for worker in active if not worker.ended()]
        tick()
        time.sleep(_POLL_SECONDS)


class _Worker:
    """The process of one task."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        threads = str(max(task.cpus, 1))
        thread_limits = {
            name: os.environ.get(name, threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
        }
        self._process = subprocess.Popen(
            # -P: without it, a file in the current folder could take the place of any module.
            [sys.executable, "-P", "-m", "ebql.studies.worker"],
            stdin=subprocess.PIPE,  # stays open while this process lives; the worker watches it
            stdout=self._output,
            stderr=self._output,
            env={**os.environ, **thread_limits},
            start_new_session=True,  # so that Ctrl-C reaches this process alone
        )
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(task.to_json()).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # it has died already; `ended` will log why
            pass

    def ask_to_stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def ended(self) -> bool:
        """Whether the process has ended; logs the reason if the process could not."""
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
            self._log_end("stopped", "Killed; its last checkpoint is kept.")
        self._close()

    def _log_end(self, event: str, reason: str) -> None:
        with suppress(InputError, OSError):  # a damaged log or a full disk must not stop the other runs
            Attempts(self._task.folder).close_after_death(event, reason)

    def _reason(self, code: int) -> str:
        if code < 0:
            name = signal.Signals(-code).name
            hint = ", perhaps for lack of memory." if name == "SIGKILL" else "."
            return f"Its process was ended by {name}{hint}"
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"Its process exited with code {code}."

    def _close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._output.close()
