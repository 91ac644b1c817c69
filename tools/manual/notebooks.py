"""The state of the code that notebooks were executed with."""

from hashlib import sha256
from pathlib import Path


def digest(package: Path) -> str:
    """Return a short name for the content of all source files of a package."""
    state = sha256()
    for path in sorted(package.rglob("*.py")):
        state.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()[:16]
