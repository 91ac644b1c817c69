"""From words typed to a call, with what the parser refuses told in one line, like every other refusal."""

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


def command_call(
    commands: Mapping[str, Callable[..., None]], words: Sequence[str], description: str
) -> Callable[[], None]:
    """Return the call that the words ask for: `ebql COMMAND …` with its arguments, not yet made."""
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
    """Turn a parser's exit for bad input, which it explains in a framed box, into an `InputError`."""
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            yield
    except SystemExit as stop:
        if stop.code == 2:
            raise InputError(unframed(told.getvalue())) from None
        raise
    sys.stderr.write(told.getvalue())


def unframed(box: str) -> str:
    """Return the sentences of a framed box, whose parts are divided by rules, as one line."""
    parts: list[list[str]] = [[]]
    for line in _COLOURS.sub("", box).splitlines():
        text = line.strip(" │")
        if text.startswith(("╭", "╰")):
            continue
        if text.strip("─-"):
            parts[-1].append(text)
        else:
            parts.append([])
    told = [" ".join(" ".join(part).split()) for part in parts if part]
    if "╭" not in box:  # where no frame can be drawn, the title is a part of its own
        told = told[1:]
    return " ".join(text if text.endswith((".", "?")) else f"{text}." for text in told)


def _deferred(command: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """Return a function with the command's signature and help that only remembers what it is called with."""

    @wraps(command)
    def remember(*args: Any, **options: Any) -> Callable[[], None]:
        return partial(command, *args, **options)

    return remember
