"""Where a result came from: the command, the versions and the date, to be kept beside it."""

import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def provenance() -> dict[str, Any]:
    """Return the command line, versions, machine type and date of this process as plain JSON values."""
    packages = ("ebql", "numpy", "scipy", "numba", "gymnasium", "matplotlib")
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in packages},
    }
