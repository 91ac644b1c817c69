"""Run a function in a forked child. The parent has imported torch already, so a child costs milliseconds.

Time limits count the processor time of the function, so that a busy machine makes no case fail. A function
that waits for ever uses none; it is ended after twenty times as many seconds of the clock.
"""

import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crash.file_layer import KILLED
from ebql.errors import UserError

TIME_IS_UP = (signal.SIGPROF, signal.SIGALRM)
_WAITING = 20  # seconds of the clock for each second of processor time


@dataclass(frozen=True)
class Outcome:
    """How a child ended."""

    code: int
    """0 if the function returned, 137 if the file layer killed it, otherwise 1 or minus a signal."""
    value: Any = None
    """What the function returned, through JSON."""
    error: str | None = None
    """The exception that ended it."""
    refused: bool = False
    """Whether that exception is a `UserError`: one clear line instead of a traceback."""
    told: tuple[str, ...] = ()
    """The warnings that it gave."""

    @property
    def done(self) -> bool:
        """Whether the function returned."""
        return self.code == 0

    @property
    def killed(self) -> bool:
        """Whether the file layer killed the process."""
        return self.code == KILLED

    def __str__(self) -> str:
        """Return the end in a few words."""
        if self.done:
            return "it ended well"
        return "it was killed" if self.killed else (self.error or f"exit code {self.code}")


def limit_time(seconds: float) -> None:
    """Send this process SIGPROF after `seconds` of processor time, or SIGALRM if it waits; 0 sends none."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _WAITING * seconds)


def in_child(function: Callable[[], Any], seconds: int = 60) -> Outcome:
    """Call `function` in a forked child, and return how that ended; after `seconds` the child is killed."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _be_child(function, writer, seconds)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGPROF, -signal.SIGALRM):
        return Outcome(code, error=f"it did not end within {seconds} seconds")
    told = json.loads(content) if content else {}
    return Outcome(
        code, told.get("value"), told.get("error"), told.get("refused", False), tuple(told.get("told", ()))
    )


def in_place(function: Callable[[], Any], seconds: int = 60) -> Outcome:
    """Call `function` in this process, and return how that ended; cheaper than a child."""

    def time_is_up(*_: object) -> None:
        raise TimeoutError(f"it did not end within {seconds} seconds")

    before = {number: signal.signal(number, time_is_up) for number in TIME_IS_UP}
    limit_time(seconds)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                value, error = function(), None
            except (Exception, KeyboardInterrupt) as problem:
                value, error = None, problem
        lines = tuple(str(warning.message) for warning in told)
        if error is None:
            return Outcome(0, value, told=lines)
        return Outcome(1, None, _described(error), isinstance(error, UserError), lines)
    finally:
        limit_time(0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _be_child(function: Callable[[], Any], writer: int, seconds: int) -> None:
    """Never return: the child must not go on with the campaign."""
    code, answer = 1, {}
    try:
        for number in TIME_IS_UP:
            signal.signal(number, signal.SIG_DFL)
        limit_time(seconds)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                answer["value"] = function()
                code = 0
            except BaseException as error:
                answer["error"] = _described(error)
                answer["refused"] = isinstance(error, UserError)
            answer["told"] = [str(warning.message) for warning in told]
        content = memoryview(json.dumps(answer).encode())
        while content:
            content = content[os.write(writer, content) :]
    finally:
        os._exit(code)


def _described(error: BaseException) -> str:
    if isinstance(error, UserError):
        return f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in frames[-3:]]
    return f"{type(error).__name__}: {error} [{' < '.join(reversed(where))}]"
