"""From words typed to a command run, and from an exception to one clear line."""

import io
import os
import sys
from collections.abc import Callable, Sequence

from rich.markup import escape

from ebql import __version__
from ebql.cli.commands.agents import agents, environments, evaluate
from ebql.cli.commands.best_k import best_k
from ebql.cli.commands.curves import curves
from ebql.cli.commands.family import family
from ebql.cli.commands.plan import plan
from ebql.cli.commands.report import report
from ebql.cli.commands.reproduce import reproduce
from ebql.cli.commands.sweep import sweep
from ebql.cli.commands.train import resume, train, train_command
from ebql.cli.commands.watch import watch
from ebql.cli.console import Console
from ebql.cli.parsing import command_call
from ebql.errors import Interrupted, UserError

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
    "curves": curves,
    "sweep": sweep,
    "report": report,
    "agents": agents,
    "environments": environments,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 done, 1 a run that failed, 2 bad input, 130 interrupted.

    A run that SIGTERM stopped, after a checkpoint like Ctrl-C, returns 143; 141: nobody reads our output.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # without γ and → it gets a ? for them, no traceback
            stream.reconfigure(errors="replace")
    try:
        if words == ["--version"]:
            print(f"ebql {__version__}", flush=True)
            return 0
        if words[:1] == ["train"]:  # its options depend on the agent that the words name
            train_command(words[1:])
            return 0
        command_call(COMMANDS, words, "Estimate the value of the best action without fooling yourself.")()
    except UserError as error:
        Console(stderr=True).print(
            f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        told = str(interrupt) or "interrupted; nothing half-written was left behind"
        Console(stderr=True).print(told, highlight=False, markup=False, soft_wrap=True)
        return interrupt.exit_code if isinstance(interrupt, Interrupted) else 130
    except BrokenPipeError:  # whoever read our output, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's own last flush
        return 141
    return 0
