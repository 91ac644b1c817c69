"""`ebql best-k`: how to estimate the best arm, from known spreads or from a file of samples."""

import csv as csv_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ebql.errors import InputError

if TYPE_CHECKING:
    from ebql.estimators import Moments, Value, Winner

_STDS = (1.0,)
_SAMPLES = 100


def best_k(
    means: tuple[float, ...] = (),
    stds: tuple[float, ...] = _STDS,
    samples: int = _SAMPLES,
    csv: Path | None = None,
    splits: int = 100,
    seed: int = 0,
) -> None:
    """Choose how to estimate the largest of several means: single, double or ensemble of K.

    With --means, compare the three by exact theory for Gaussian arms. With --csv, correct the mean of
    an experiment's winner (the optimiser's curse) from its samples.

    Args:
        means: The arms' means, e.g. --means 1.0 0.8 0.5.
        stds: The standard deviation of one sample: one for all arms, or one per arm.
        samples: Samples of each arm.
        csv: A file with one column of samples per arm. Names in the first row and blank cells are fine.
        splits: With --csv: random splits to average, so that no single split decides.
        seed: With --csv: seed of those splits.
    """
    if bool(means) == (csv is not None):
        raise InputError("Give either --means (theory) or --csv (a file of samples), and not both.")
    if csv is None:
        if len(means) < 2 or samples < 2:
            raise InputError("There is nothing to choose with fewer than 2 --means or 2 --samples.")
        _compare(means, stds, samples)
        return
    if stds != _STDS or samples != _SAMPLES:
        raise InputError("A --csv file brings its own samples: leave out --stds and --samples.")
    _correct(read_arms(csv), splits, seed)


class Arm(NamedTuple):
    """One column of a file: its name and its samples."""

    name: str
    samples: list[float]


def read_arms(path: Path) -> list[Arm]:
    """Read one arm per column; blank cells are skipped; a first row without any number names the arms."""
    rows = [[cell.strip() for cell in row] for row in _read_rows(path)]
    width = max((i + 1 for row in rows for i, cell in enumerate(row) if cell), default=0)
    if width == 0:
        raise InputError(f"The file {str(path)!r} is empty.")
    if width == 1:
        raise InputError(f"{str(path)!r} has one column; a best arm needs at least two, separated by commas.")
    first = [cell for cell in rows[0] if cell]
    header = rows.pop(0) if first and not any(_is_number(cell) for cell in first) else []
    names = [header[i] if i < len(header) and header[i] else f"arm {i + 1}" for i in range(width)]
    first_line = 2 if header else 1
    columns: list[list[float]] = [[] for _ in names]
    for line, row in enumerate(rows, start=first_line):
        for column, cell in enumerate(row[:width]):
            if cell:
                columns[column].append(_sample(cell, line, column + 1, names[column]))
    for name, column_samples in zip(names, columns, strict=True):
        if len(column_samples) < 2:
            raise InputError(f"Arm {name!r} has {len(column_samples)} sample(s); every arm needs at least 2.")
    return [Arm(name, column) for name, column in zip(names, columns, strict=True)]


def _read_rows(path: Path) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(csv_format.reader(file))
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except (UnicodeDecodeError, csv_format.Error) as error:
        raise InputError(f"{str(path)!r} is not a CSV text file in UTF-8.") from error


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _sample(cell: str, row: int, column: int, name: str) -> float:
    place = f"row {row}, column {column} ({name})"
    if not _is_number(cell):
        raise InputError(f"Not a number at {place}: {cell!r}.")
    value = float(cell)
    if value - value != 0:
        raise InputError(f"NaN or infinity at {place}: {cell!r}. Leave the cell blank if there is no sample.")
    return value


def _compare(means: Sequence[float], stds: Sequence[float], samples: int) -> None:
    from ebql.estimators import ensemble_moments, optimal_ensemble_size, single_moments

    best = optimal_ensemble_size(means, stds, samples)
    ensemble_name = f"ensemble, K = {best}"
    methods = {
        "single": single_moments(means, stds, samples),
        "double": ensemble_moments(means, stds, samples, 2),
        ensemble_name: ensemble_moments(means, stds, samples, best),
    }
    table = Table(title=f"Estimating the largest of {len(means)} means from {samples} samples of each")
    for heading in ("estimator", "bias", "sd", "RMSE", "P(picks a best arm)"):
        table.add_column(heading, justify="left" if heading == "estimator" else "right")
    right = [mean == max(means) for mean in means]
    for name, moments in methods.items():
        table.add_row(name, *_numbers(moments), f"{moments.selection[right].sum():.4f}")
    console = Console(highlight=False)
    console.print(table)
    least = min(methods, key=lambda name: (float(methods[name].mse), name == ensemble_name))
    console.print(f"Use: [bold]{least}[/] (least RMSE).")
    if least == "single":
        console.print(f"It overestimates on average; if you must not, use [bold]{ensemble_name}[/].")


def _numbers(moments: "Moments") -> list[str]:
    return [f"{moments.bias:+.4g}", f"{moments.variance**0.5:.4g}", f"{moments.mse**0.5:.4g}"]


def _correct(arms: list[Arm], splits: int, seed: int) -> None:
    import numpy as np

    from ebql.estimators import correct_winner

    if seed < 0:
        raise InputError(f"--seed must be at least 0, not {seed}.")
    winner = correct_winner([arm.samples for arm in arms], np.random.default_rng(seed), splits=splits)
    console = Console(highlight=False)
    console.print(_arms_table(arms, winner))
    console.print(_values_table(winner))
    _explain(console, escape(arms[winner.index].name), winner, splits)


def _arms_table(arms: list[Arm], winner: "Winner") -> Table:
    table = Table(title="The arms")
    for heading in ("arm", "samples", "mean", "picked by selectors"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for index, arm in enumerate(arms):
        mean = f"{sum(arm.samples) / len(arm.samples):.5g}"
        style = "bold" if index == winner.index else ""
        table.add_row(
            escape(arm.name), str(len(arm.samples)), mean, f"{winner.votes[index]:.0%}", style=style
        )
    return table


def _values_table(winner: "Winner") -> Table:
    table = Table(title="What the best arm is worth")
    for heading in ("estimate of the best mean", "value", "standard error", "95% interval"):
        table.add_column(heading, justify="left" if heading.startswith("estimate") else "right")
    table.add_row("naive: the winner's own mean", *_value_cells(winner.naive))
    table.add_row("double: an ensemble of 2", *_value_cells(winner.double))
    name = f"corrected: an ensemble of {winner.ensemble_size}"
    table.add_row(name, *_value_cells(winner.corrected), style="bold")
    return table


def _value_cells(value: "Value") -> list[str]:
    return [
        f"{value.estimate:.5g}",
        f"{value.standard_error:.3g}",
        f"{value.low:.5g} to {value.high:.5g}",
    ]


def _explain(console: Console, name: str, winner: "Winner", splits: int) -> None:
    naive, corrected = winner.naive, winner.corrected
    console.print(
        f"[bold]{name}[/] has the highest mean, {naive.estimate:.5g}; but a winner's own mean flatters it. "
        f"Expect about [bold]{corrected.estimate:.5g}[/] ({corrected.low:.5g} to {corrected.high:.5g})."
    )
    console.print(
        f"The corrected value averages {splits} random splits: in each, one part of the samples picks "
        f"the arm and the others measure it. It leans low when arms are close. Its interval is for one "
        f"split and roughly normal means, so it errs on the wide side; the naive one ignores the picking."
    )
