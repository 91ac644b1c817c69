"""From words typed to a command run, and from an exception to one clear line."""

import sys
from collections.abc import Callable, Sequence

import tyro
from rich.console import Console
from rich.markup import escape

from ebql.errors import UserError

# Command modules import their heavy parts where they use them, so that `ebql --help` answers at once.
COMMANDS: dict[str, Callable[..., None]] = {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 done, 1 a run that failed, 2 bad input, 130 interrupted."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="ebql",
            description="Estimate the value of the best action without fooling yourself.",
            args=sys.argv[1:] if arguments is None else arguments,
        )
    except UserError as error:
        Console(stderr=True).print(
            f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        return error.exit_code
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; nothing half-written was left behind")
        return 130
    return 0
