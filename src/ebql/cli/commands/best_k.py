"""`ebql best-k`: how to estimate the best arm, from known means or from a file of samples."""

import csv as csv_format
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.markup import escape
from rich.table import Table

from ebql.cli.console import Console
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
        csv: A file with one column of samples per arm, separated by commas, semicolons or tabs. Names in
            the first row and blank cells are fine.
        splits: With --csv: random splits to average, so that no single split decides.
        seed: With --csv: seed of those splits.
    """
    if bool(means) == (csv is not None):
        raise InputError("Give either --means (theory) or --csv (a file of samples), not both.")
    if csv is None:
        if len(means) < 2 or samples < 2:
            raise InputError(
                "Give at least 2 --means and at least 2 --samples: otherwise there is nothing to choose."
            )
        _compare(means, stds, samples)
        return
    if stds != _STDS or samples != _SAMPLES:
        raise InputError("A --csv file brings its own samples: leave out --stds and --samples.")
    _correct(read_arms(csv), splits, seed)


class Arm(NamedTuple):
    """One column of a file: its name and its samples."""

    name: str
    samples: list[float]


class Sheet(NamedTuple):
    """What a file holds: its arms, and whether its first row `names` them."""

    arms: list[Arm]
    names: bool


class _Row(NamedTuple):
    line: int
    cells: list[str]


def read_arms(path: Path) -> Sheet:
    """Read one arm per column; blank cells are skipped; a first row without any number names the arms."""
    from ebql.estimators.arrays import real_numbers

    rows = _read_rows(path)
    if not rows:
        raise InputError(f"The file {str(path)!r} is empty.")
    width = max(i + 1 for row in rows for i, cell in enumerate(row.cells) if cell)
    if width == 1:
        raise InputError(
            f"{str(path)!r} has one column; it needs two or more, separated by commas, semicolons or tabs."
        )
    header = [] if any(_is_number(cell) for cell in rows[0].cells) else rows.pop(0).cells
    names = [header[i] if i < len(header) and header[i] else f"arm {i + 1}" for i in range(width)]
    columns: list[list[float]] = [[] for _ in names]
    for line, cells in rows:
        for column, cell in enumerate(cells[:width]):
            if cell:
                columns[column].append(_sample(cell, line, column + 1, names[column]))
    for name, column_samples in zip(names, columns, strict=True):
        if len(column_samples) < 2:
            raise InputError(f"Arm {name!r} has {len(column_samples)} sample(s); every arm needs at least 2.")
        real_numbers(f"samples of {name!r}", column_samples)
    return Sheet([Arm(name, column) for name, column in zip(names, columns, strict=True)], bool(header))


def _read_rows(path: Path) -> list[_Row]:
    """Return the rows that are not blank, each with the number of its line in the file."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = file.readlines()
        reader = csv_format.reader(lines, delimiter=_delimiter(lines))
        rows = [_Row(reader.line_num, [" ".join(cell.split()) for cell in cells]) for cells in reader]
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except (UnicodeDecodeError, csv_format.Error) as error:
        raise InputError(f"{str(path)!r} is not a CSV text file in UTF-8.") from error
    return [row for row in rows if any(row.cells)]


def _delimiter(lines: list[str]) -> str:
    """Return the mark on most lines. A tie goes to the earlier one: commas may be decimal commas."""
    return max("\t;,", key=lambda mark: sum(mark in line for line in lines))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, but a file hardly means it


def _sample(cell: str, line: int, column: int, name: str) -> float:
    place = f"line {line}, column {column} ({name})"
    if not _is_number(cell):
        hint = " Decimals need a point." if _is_number(cell.replace(",", ".")) else ""
        raise InputError(f"Not a number at {place}: {cell!r}.{hint}")
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
    least = _least({name: float(moments.mse) for name, moments in methods.items()})
    console.print(f"Use: [bold]{least}[/] (least RMSE).")
    if least == "single":
        console.print(f"It overestimates on average; to avoid that, use [bold]{ensemble_name}[/].")


def _numbers(moments: "Moments") -> list[str]:
    return [f"{moments.bias:+.4g}", f"{moments.variance**0.5:.4g}", f"{moments.mse**0.5:.4g}"]


def _least(errors: Mapping[str, float]) -> str:
    """Return the name of the least error; the earlier name where they tie."""
    return min(errors, key=lambda name: errors[name])


def _correct(sheet: Sheet, splits: int, seed: int) -> None:
    import numpy as np

    from ebql.estimators import correct_winner

    if seed < 0:
        raise InputError(f"--seed must be at least 0, not {seed}.")
    arms = sheet.arms
    winner = correct_winner([arm.samples for arm in arms], np.random.default_rng(seed), splits=splits)
    console = Console(highlight=False)
    note = "" if sheet.names else " No header found: the first row counts as samples."
    console.print(f"Read {sum(len(arm.samples) for arm in arms)} samples of {len(arms)} arms.{note}")
    console.print(_arms_table(arms, winner))
    console.print(_values_table(winner))
    _advise(console, escape(arms[winner.index].name), winner)
    _explain(console, splits)


def _arms_table(arms: list[Arm], winner: "Winner") -> Table:
    table = Table(title="The arms")
    for heading in ("arm", "samples", "mean", "picked by splits"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for index, arm in enumerate(arms):
        mean = f"{sum(arm.samples) / len(arm.samples):.5g}"
        style = "bold" if index == winner.index else ""
        table.add_row(
            escape(arm.name), str(len(arm.samples)), mean, f"{winner.votes[index]:.0%}", style=style
        )
    return table


def _values_table(winner: "Winner") -> Table:
    table = Table(title="What the best arm is worth, and the error of each estimate")
    for heading in ("estimate", "value", "95% interval", "bias", "RMSE"):
        table.add_column(heading, justify="left" if heading == "estimate" else "right")
    table.add_row("naive", *_value_cells(winner.naive))
    table.add_row("double, K = 2", *_value_cells(winner.double))
    name = f"corrected, K = {winner.ensemble_size}"
    table.add_row(name, *_value_cells(winner.corrected), style="bold")
    return table


def _value_cells(value: "Value") -> list[str]:
    interval = f"{value.low:.4g} to {value.high:.4g}"
    return [f"{value.estimate:.5g}", interval, f"{value.bias:+.3g}", f"{value.rmse:.3g}"]


def _advise(console: Console, name: str, winner: "Winner") -> None:
    naive, corrected = winner.naive, winner.corrected
    console.print(
        f"[bold]{name}[/] has the highest mean, {naive.estimate:.5g}. Corrected for having been picked, the "
        f"best arm is worth about [bold]{corrected.estimate:.5g}[/] "
        f"({corrected.low:.5g} to {corrected.high:.5g})."
    )
    # The corrected ensemble is the best of all sizes, so the double need not be compared.
    if _least({"naive": naive.rmse, "corrected": corrected.rmse}) == "naive":
        console.print(
            f"Use: [bold]naive, {naive.estimate:.5g}[/] (least expected RMSE). Picking the best adds "
            f"about {naive.bias:.2g} to it, which is less harmful than the correction. If you must not "
            f"overestimate, use [bold]corrected, {corrected.estimate:.5g}[/]."
        )
    else:
        console.print(
            f"Use: [bold]corrected, {corrected.estimate:.5g}[/] (least expected RMSE). The arms are so close "
            f"that the naive mean probably owes about {naive.bias:.2g} to luck."
        )


def _explain(console: Console, splits: int) -> None:
    console.print(
        "[bold]naive[/]: the mean of all samples of the best arm. Part of its lead is luck, so it "
        "is too high on average; fine where one arm is clearly ahead."
    )
    console.print(
        f"[bold]corrected[/]: {splits} random splits, averaged; in each, one of K parts of the samples picks "
        f"the arm and the others measure it. On average it is hardly too high, but too low where splits "
        f"pick worse arms: slightly if the arms are alike or far apart, most in between."
    )
    console.print(
        "Bias and RMSE are the theoretical values for normal samples whose means are shrunk towards each "
        "other, by as much as noise spreads sample means. That is a guess: where the arms are truly alike, "
        "it understates the bias of the naive mean. The intervals do not include the bias."
    )
