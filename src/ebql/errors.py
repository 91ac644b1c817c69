"""Errors that the user can fix, as opposed to bugs.

The command line shows a `UserError` as one line and exits with its exit code, 2 for bad input. Any other
exception is a bug and keeps its traceback. Python callers can catch `ValueError` or `TypeError`.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from operator import index


class UserError(Exception):
    """An error whose one-line message says what is wrong and what to do.

    >>> from ebql.tabular import EBQL
    >>> try:
    ...     EBQL(ensemble_size=1)
    ... except UserError as error:
    ...     print(f"{error} (exit code {error.exit_code})")
    EBQL's ensemble size must be at least 2, not 1. (exit code 2)
    """

    exit_code = 2


class InputError(UserError, ValueError):
    """A value is out of range or contradicts another one.

    >>> from ebql.estimators import weighted_double
    >>> try:
    ...     weighted_double([[1.0], [2.0]], n_index=1)
    ... except ValueError as error:
    ...     print(error)
    A split needs at least 2 samples of each arm; the smallest arm has 1.
    """


class InputTypeError(UserError, TypeError):
    """An argument has the wrong type.

    >>> from ebql.tabular import learn
    >>> try:
    ...     learn("FrozenLake-v1", "ebql", episodes=10)
    ... except TypeError as error:
    ...     print(error)
    agent must be an Agent, such as EBQL(10), not 'ebql'.
    """


class OutputError(UserError, OSError):
    """A file cannot be written; this is also an `OSError` with its number.

    >>> from ebql.runs import write_text
    >>> try:
    ...     write_text("no/such/folder/notes.txt", "text")
    ... except OSError as error:
    ...     print(error)
    Cannot write 'no/such/folder/notes.txt': No such file or directory.
    """

    def __str__(self) -> str:
        """Return the message without the number."""
        return str(self.strerror)


class RunError(UserError, RuntimeError):
    """A run cannot continue (the loss is NaN, the disk is full); its last checkpoint stays valid."""

    exit_code = 1


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run, which saved a checkpoint first."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
        """The exit code that shells use: 130 after Ctrl-C, 143 after SIGTERM."""


def whole_number(name: str, value: object, least: int) -> int:
    """Return `value` as an int; raise an error unless it is a whole number of at least `least`."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputTypeError(f"{name} must be a whole number, not {value!r}.") from None
    if number < least:
        raise InputError(f"{name} must be at least {least}, not {number}.")
    return number


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a `name` of some `kind` that is not `known`; it suggests the closest name.

    >>> str(unknown_name("agent", "ebqll", ["dqn", "ebql"]))
    "Unknown agent 'ebqll'. Did you mean 'ebql'? Known: dqn, ebql."
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InputError(f"Unknown {kind} {name!r}.{hint} Known: {', '.join(names)}.")
