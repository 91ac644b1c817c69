"""`ebql.results`: kept results as a tidy table."""

import csv
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError, unknown_name
from ebql.kept.files import EVALUATIONS, METRICS
from ebql.runs.files import unquoted

if TYPE_CHECKING:
    import pandas

# The first of these in a folder is its table. Older results kept the last evaluations or scores only.
_TABLES = (EVALUATIONS, "runs.csv", "scores.csv", "summary.csv")
# The columns of older files that have another name now.
_TODAY = {metric: column for column, metric in METRICS.items()}


@overload
def results(name: None = None) -> list[str]: ...


@overload
def results(name: str | Path) -> "pandas.DataFrame | dict[str, NDArray[Any]]": ...


def results(name: str | Path | None = None) -> "list[str] | pandas.DataFrame | dict[str, NDArray[Any]]":
    """Return kept results as a tidy table, a row for each evaluation; without a name, list the names.

    With pandas the table is a `DataFrame`, otherwise a dict that maps the same names of columns to NumPy
    arrays (rows,). `name` is one of `ebql.results()`, whose files ship with the package, or a folder that
    `ebql keep` wrote.

    Columns: environment, agent, seed, step (agent steps), return (the mean undiscounted return of the greedy
    episodes), return_std and length over those episodes, episodes, bias (the mean of Q̂ − discounted return),
    bias_standard_error, bias_normalised (over the mean absolute return), spread and agreement of the members,
    value, discounted_return, and how time limits were dealt with. What was not measured is NaN. Older results
    have fewer columns, named by their own files.

    >>> "minatar" in results()
    True
    >>> table = results("minatar")
    >>> list(table)[:5]
    ['environment', 'agent', 'seed', 'step', 'return']
    """
    if name is None:
        return sorted(_shipped())
    columns = _columns(_table(name))
    try:
        import pandas
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def kept_folders() -> list[Path]:
    """Return the folders of the shipped results that say where each run came from."""
    return [path.parent for path in _shipped().values() if path.name == EVALUATIONS]


def _table(name: str | Path) -> Path:
    known = _shipped()
    if str(name) in known:
        return known[str(name)]
    for file in _TABLES:
        if (Path(name) / file).is_file():
            return Path(name) / file
    raise unknown_name("results", str(name), known)


def _shipped() -> dict[str, Path]:
    """Return the table of each name: inside the package once it is built, in a checkout below `results/`."""
    inside = Path(str(files("ebql.kept"))) / "results"
    root = inside if inside.is_dir() else Path(__file__).parents[3] / "results"
    found: dict[str, Path] = {}
    for file in _TABLES:
        for path in root.rglob(file):
            found.setdefault(path.parent.relative_to(root).as_posix(), path)
    return found


def _columns(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file, strict=True)
        cells = dict(zip(header, zip(*rows, strict=True), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"Cannot read {str(path)!r} as a table: {error}.") from error
    named: Mapping[str, tuple[str, ...]] = {_TODAY.get(name, name): own for name, own in cells.items()}
    return {name: _typed(own) for name, own in named.items()}


def _typed(cells: tuple[str, ...]) -> NDArray[Any]:
    """Return a column as whole numbers, else as numbers with NaN for empty cells, else as text."""
    try:
        return np.array([int(cell) for cell in cells], np.int64)
    except ValueError:
        pass
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return np.array([unquoted(cell) for cell in cells])
