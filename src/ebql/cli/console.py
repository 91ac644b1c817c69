"""The console that commands print to."""

from typing import NoReturn

from rich.console import Console as RichConsole


class Console(RichConsole):
    """Rich's console, except that `main` handles a closed pipe, with an exit code of its own."""

    def on_broken_pipe(self) -> NoReturn:
        """Pass the error on to `main`."""
        raise BrokenPipeError
