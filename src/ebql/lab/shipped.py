"""Files that live elsewhere in the repository, and inside the package once it is built."""

from importlib.resources import files
from pathlib import Path

_PLACES = {"algorithms.md": "docs/algorithms.md", "regimes.csv": "results/paper/regimes.csv"}


def shipped(name: str) -> str:
    """Return the text of a file that the wheel contains; in a checkout, that of its original."""
    inside = files("ebql.lab").joinpath(name)
    if inside.is_file():
        return inside.read_text(encoding="utf-8")
    return (Path(__file__).parents[3] / _PLACES[name]).read_text(encoding="utf-8")
