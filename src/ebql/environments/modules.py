"""The modules that environments of your own come from: `my_module:MyEnv-v0`, as in Gymnasium.

Importing a module runs its code. So only the user's own word imports one: an id that was typed, or the option
`--import my_module`. An id that was read from a file never does.
"""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import gymnasium

from ebql.errors import InputError


def module_of(environment: str) -> str | None:
    """Return the module in an id such as `my_module:MyEnv-v0`; None if the id names none."""
    module, colon, _ = environment.partition(":")
    return module if colon and all(map(str.isidentifier, module.split("."))) else None


def import_modules(names: Iterable[str]) -> None:
    """Import the modules that the user named; as in a Python shell, the current folder is searched too."""
    for name in names:
        if not all(map(str.isidentifier, name.split("."))):
            raise InputError(f"{name!r} is not the name of a module: write it as in Python, without .py.")
        if "" not in sys.path:
            sys.path.append("")
        try:
            import_module(name)
        except Exception as error:  # a user's module can raise anything
            why = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"Cannot import the module {name!r}: {why}.") from error


def import_module_of(environment: str) -> None:
    """Import the module of an id that the user typed, if it names one."""
    if (module := module_of(environment)) is not None:
        import_modules([module])


def environment_named(name: str) -> str | Callable[[], gymnasium.Env[Any, Any]]:
    """Return the class or function `module:Name` that the user typed; any other id is returned as it is."""
    import_module_of(name)
    module = module_of(name)
    made = None if module is None else getattr(sys.modules[module], name.partition(":")[2], None)
    return made if callable(made) else name


def require_imported(environment: str) -> None:
    """Refuse an id whose module has not been imported: the id may come from a file that a stranger wrote."""
    module = module_of(environment)
    if module is not None and module not in sys.modules:
        raise InputError(
            f"The environment {environment!r} would run the code of the module {module!r}. If you trust it, "
            f"add --import {module} (in Python: import it first, or pass `environment`)."
        )
