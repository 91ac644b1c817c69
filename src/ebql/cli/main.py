"""Run the command that the arguments name, and turn exceptions into one clear line and an exit code."""

import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from rich.markup import escape

from ebql import __version__
from ebql.cli.commands.agents import agents, environments, evaluate
from ebql.cli.commands.best_k import best_k
from ebql.cli.commands.curves import curves
from ebql.cli.commands.export import export
from ebql.cli.commands.keep import keep
from ebql.cli.commands.lab import lab
from ebql.cli.commands.paper.family import family
from ebql.cli.commands.paper.plan import plan
from ebql.cli.commands.paper.reproduce import reproduce
from ebql.cli.commands.publish import publish
from ebql.cli.commands.report import report
from ebql.cli.commands.sweep import sweep
from ebql.cli.commands.train import resume, train, train_command
from ebql.cli.commands.tune import tune
from ebql.cli.commands.watch import watch
from ebql.cli.parsing import command_call, without_colours
from ebql.errors import Interrupted, UserError
from ebql.runs import errors_in_one_line
from ebql.terminal.console import Console

# Command modules import their heavy parts where they use them, so that `ebql --help` answers at once.
COMMANDS: dict[str, Callable[..., None]] = {
    "best-k": best_k,
    "reproduce": reproduce,
    "family": family,
    "plan": plan,
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "watch": watch,
    "export": export,
    "publish": publish,
    "curves": curves,
    "sweep": sweep,
    "tune": tune,
    "keep": keep,
    "report": report,
    "lab": lab,
    "agents": agents,
    "environments": environments,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without arguments, print the help.

    0: done. 1: a run failed. 2: bad input. 130: interrupted. 141: the reader of our output has closed the
    pipe. 143: SIGTERM stopped a run, which saved a checkpoint first, as after Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # an encoding without γ and → gets a ? instead of a traceback
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        return _exit_code(words)


def _exit_code(words: Sequence[str]) -> int:
    try:
        if words == ["--version"]:
            print(f"ebql {__version__}", flush=True)
            return 0
        with errors_in_one_line():
            if words[:1] == ["train"]:  # its options depend on --agent
                train_command(words[1:])
                return 0
            about = "Estimate the value of the best action without fooling yourself."
            command_call(COMMANDS, words, about)()
    except UserError as error:
        _tell_error(str(error))
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        message = str(interrupt) or "interrupted; no half-written files were left behind"
        Console(stderr=True).print(message, highlight=False, markup=False, soft_wrap=True)
        return interrupt.exit_code if isinstance(interrupt, Interrupted) else 130
    except BrokenPipeError:  # the reader of our output, `head` for example, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python's last flush goes
        return 141
    return 0


def _tell_error(line: str) -> None:
    Console(stderr=True).print(f"[bold red]error:[/] {escape(line)}", highlight=False, soft_wrap=True)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning in one line; Python would show where in the code it was raised."""
    text = without_colours(str(message)).removeprefix("WARN: ")  # Gymnasium adds both
    line = " ".join(text.split())
    Console(stderr=True).print(f"[bold yellow]warning:[/] {escape(line)}", highlight=False, soft_wrap=True)
