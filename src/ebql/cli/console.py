"""The terminal, or whatever reads our output in its place."""

from typing import NoReturn

from rich.console import Console as RichConsole


class Console(RichConsole):
    """Rich's console, but that a reader who left is for `main` to answer, with its own exit code."""

    def on_broken_pipe(self) -> NoReturn:
        """Let the error that is being handled pass."""
        raise BrokenPipeError
