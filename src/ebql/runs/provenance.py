"""Where a result came from: the command, the versions and the date, to be kept beside it."""

import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = (
    "ebql",
    "numpy",
    "scipy",
    "numba",
    "torch",
    "gymnasium",
    "minatar",
    "ale-py",
    "safetensors",
    "matplotlib",
)


def provenance(command: Sequence[str] | None = None) -> dict[str, Any]:
    """Return command, date and versions as plain JSON values; the command is this process's by default."""
    words = sys.argv if command is None else command
    program = [Path(word).name for word in words[:1]]
    return {
        "command": shlex.join([*program, *words[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
    }


def versions(*more: str) -> dict[str, str]:
    """Return the versions of Python and of the packages (`more` of them) that a result depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in (*_PACKAGES, *more):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def peak_memory() -> dict[str, int]:
    """Return the most memory that this process has held so far, as `peak_memory_bytes`; {} if unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return {}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
