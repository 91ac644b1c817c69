"""The page of all commands, with the help that the parser prints."""

import os
from contextlib import redirect_stdout, suppress
from io import StringIO
from textwrap import TextWrapper
from unittest.mock import patch

from ebql.cli.main import COMMANDS, main

_COLUMNS = "100"
_INTRODUCTION = """# Commands

`ebql --help` lists the commands and `ebql COMMAND --help` explains one. This page shows what they print.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a run failed |
| 2 | the input makes no sense; one line says why |
| 130, 143 | stopped by Ctrl-C or SIGTERM; a run saved a checkpoint first |
"""


def page() -> str:
    """Return the page of all commands."""
    sections = [f"## {name}\n\n```text\n$ ebql {name} --help\n{help_of(name)}\n```\n" for name in COMMANDS]
    return "\n".join([_INTRODUCTION, f"```text\n$ ebql --help\n{help_of()}\n```\n", *sections])


def help_of(*words: str) -> str:
    """Return what `ebql WORDS --help` prints, without colours, and wrapped at 100 columns."""
    told = StringIO()
    environment = patch.dict(os.environ, COLUMNS=_COLUMNS, NO_COLOR="1")
    with environment, redirect_stdout(told), suppress(SystemExit):  # the parser exits after its help
        main([*words, "--help"])
    lines = told.getvalue().strip("\n").splitlines()
    whole_words = TextWrapper(int(_COLUMNS), break_long_words=False, break_on_hyphens=False)
    return "\n".join(whole_words.fill(line) if line[:1].strip() else line.rstrip() for line in lines)
