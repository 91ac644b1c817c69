"""What a person did wrong, told apart from what the program did wrong.

The command line turns a `UserError` into one line and its exit code, 2 for bad input; any other exception
is a bug and keeps its traceback. Python callers catch plain `ValueError` or `TypeError`.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from operator import index


class UserError(Exception):
    """Bad input: its message is one line that says what is wrong and what to do."""

    exit_code = 2


class InputError(UserError, ValueError):
    """A value out of range, or one that contradicts another."""


class InputTypeError(UserError, TypeError):
    """A thing of the wrong kind."""


class OutputError(UserError, OSError):
    """A file that can't be written; also an `OSError`, with its number."""

    def __str__(self) -> str:
        """The message alone, without the number."""
        return str(self.strerror)


class RunError(UserError, RuntimeError):
    """A run that could not go on (a loss that is not a number, a full disk): its checkpoint stays good."""

    exit_code = 1


class Interrupted(KeyboardInterrupt):
    """A signal asked the run to stop, and it did, after a checkpoint."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
        """As a shell has it: 130 after Ctrl-C, 143 after SIGTERM."""


def whole_number(name: str, value: object, least: int) -> int:
    """Return `value` as an int, if it is a whole number of at least `least`."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputTypeError(f"{name} must be a whole number, not {value!r}.") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, not {number}.")
    return number


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a `name` that is not among the `known` names of its `kind`."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"Unknown {kind} {name!r}.{hint} Known: {', '.join(names)}.")
