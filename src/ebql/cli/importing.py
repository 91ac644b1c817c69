"""The option `--import MODULE`, shared by commands that make environments or agents named in files."""

from collections.abc import Iterable
from typing import Annotated

import tyro

Imports = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="import", metavar="MODULE")
]


def import_named(modules: Iterable[str]) -> None:
    """Import the modules that the user named with `--import`."""
    if names := list(modules):
        from ebql.environments.modules import import_modules  # imports gymnasium, which takes a moment

        import_modules(names)
