"""Parse arguments with tyro, and report what it refuses in one line, like every other error."""

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import partial, wraps
from typing import Any

import tyro

from ebql.errors import InputError, unknown_name

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# The parser indents missing arguments and the call for help by four spaces, what it says of them by eight.
_MISSING = re.compile(r"Missing from ([^:\n]+):")
_ARGUMENT = re.compile(r"^[│ ] {5}(\S[^│\n]*)", re.M)


def command_call(
    commands: Mapping[str, Callable[..., None]], words: Sequence[str], description: str
) -> Callable[[], None]:
    """Return the call of the command that `words` name, with its arguments, without making it."""
    if words and not words[0].startswith("-") and words[0] not in commands:
        raise unknown_name("command", words[0], commands)
    calls = {name: _deferred(command) for name, command in commands.items()}
    with told_in_one_line():
        call: Callable[[], None] = tyro.extras.subcommand_cli_from_dict(
            calls, prog="ebql", description=description, args=words
        )
    return call


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn the parser's exit for bad input, which prints a framed box, into an `InputError` of one line."""
    printed = io.StringIO()
    try:
        with redirect_stderr(printed):
            yield
    except SystemExit as stop:
        if stop.code == 2:
            raise InputError(unframed(printed.getvalue())) from None
        raise
    sys.stderr.write(printed.getvalue())


def without_colours(text: str) -> str:
    """Return a text without the codes that colour it in a terminal."""
    return _COLOURS.sub("", text)


def unframed(box: str) -> str:
    """Return the text of a framed box as one line; horizontal rules divide it into sentences."""
    plain = without_colours(box)
    missing = _MISSING.search(plain)
    listed = [text.strip() for text in _ARGUMENT.findall(plain[missing.end() :])] if missing else []
    if missing and len(listed) > 1:
        *needed, help_call = listed
        return f"{missing[1]} needs {' and '.join(needed)}. For help: {help_call}"
    parts: list[list[str]] = [[]]
    for line in plain.splitlines():
        text = line.strip(" │")
        if text.startswith(("╭", "╰")):
            continue
        if text.strip("─-"):
            parts[-1].append(text)
        else:
            parts.append([])
    sentences = [" ".join(" ".join(part).split()) for part in parts if part]
    if "╭" not in box:  # where no frame can be drawn, the title is a part of its own
        sentences = sentences[1:]
    return " ".join(text if text.endswith((".", "?")) else f"{text}." for text in sentences)


def _deferred(command: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """Return a function with the command's signature and help that returns the call instead of making it."""

    @wraps(command)
    def remember(*args: Any, **options: Any) -> Callable[[], None]:
        return partial(command, *args, **options)

    return remember
