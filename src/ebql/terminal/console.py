"""The console that commands print to."""

from typing import Any, NoReturn

from rich.console import Console as RichConsole
from rich.text import Text

from ebql.runs.files import visible


class Console(RichConsole):
    """Rich's console, except that `main` handles a closed pipe, and that text cannot control the terminal.

    Labels, reasons and names come from files, which a stranger may have written.
    """

    def on_broken_pipe(self) -> NoReturn:
        """Pass the error on to `main`."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Render text with its control characters written out."""
        return super().render_str(visible(text), **options)
