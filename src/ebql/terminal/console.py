"""The console that commands print to."""

import re
from typing import Any, NoReturn

from rich.console import Console as RichConsole
from rich.text import Text

# Control characters except tab and line feed, and those that turn the direction of text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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


def visible(text: str) -> str:
    """Return text with its control characters written out as in a Python string."""
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)
