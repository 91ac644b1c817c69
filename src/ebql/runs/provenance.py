"""Where a result came from: the command, the date, the versions and the commit, to be stored with it."""

import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

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
_GIT_SECONDS = 5.0


def provenance(command: Sequence[str] | None = None) -> dict[str, Any]:
    """Return command, date, versions and commit as JSON values; by default the command of this process.

    >>> about = provenance(["/usr/bin/ebql", "train", "CartPole-v1"])
    >>> about["command"], sorted(about)
    ('ebql train CartPole-v1', ['command', 'commit', 'date', 'versions'])
    """
    words = sys.argv if command is None else command
    program = [Path(word).name for word in words[:1]]
    return {
        "command": shlex.join([*program, *words[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "commit": commit(),
    }


def versions(*more: str) -> dict[str, str]:
    """Return the versions of Python and of the packages (`more` of them) that a result depends on.

    `cpu` is the set of instructions that NumPy uses, `torch cpu` the one that torch uses, if it is loaded.

    >>> {"python", "cpu", "ebql", "numpy", "rich"} <= versions("rich").keys()
    True
    """
    found = {"python": platform.python_version(), "platform": platform.platform(), "cpu": _numpy_cpu()}
    if (torch := sys.modules.get("torch")) is not None:
        found["torch cpu"] = str(torch.backends.cpu.get_cpu_capability())
    for package in (*_PACKAGES, *more):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _numpy_cpu() -> str:
    extensions: Any = np.show_config(mode="dicts")["SIMD Extensions"]
    return str([*extensions["baseline"], *extensions["found"]][-1])


@cache
def commit() -> str | None:
    """Return the commit of the checkout that the package is imported from, `-dirty` if files were changed.

    None if the package is installed, or if git cannot tell.
    """
    checkout = Path(__file__).resolve().parents[3]  # of src/ebql/runs/provenance.py
    if not (checkout / ".git").exists():  # an installed package may lie inside another project's checkout
        return None
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        result = subprocess.run(
            command, cwd=checkout, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None


def peak_memory() -> dict[str, int]:
    """Return the most memory that this process has held so far, as `peak_memory_bytes`; {} if unknown.

    >>> peak_memory().get("peak_memory_bytes", 2**20) >= 2**20  # at least a megabyte
    True
    """
    try:
        import resource
    except ImportError:  # Windows
        return {}
    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
