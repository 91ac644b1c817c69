"""The command line: `ebql COMMAND --help` explains each command."""

from ebql.cli.main import main

__all__ = ["main"]
