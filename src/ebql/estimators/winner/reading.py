"""Read the arms of a test from a table as people have it: samples, observations or totals.

A table is CSV text, separated by commas, semicolons or tabs. With the last two, decimals may have a comma.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ebql.errors import InputError
from ebql.estimators.arrays import real_numbers
from ebql.estimators.winner.arms import Arms

LAYOUTS = (
    "one column of samples per arm; one row per observation (user, variant, converted); "
    "or one row per arm (variant, visitors, conversions) or (variant, n, mean, std)"
)
"""The layouts that are understood, as a refusal lists them."""

_ARM_HEADINGS = {
    "variant",
    "arm",
    "group",
    "variation",
    "treatment",
    "bucket",
    "version",
    "branch",
    "condition",
}
_COUNT_HEADINGS = {"n", "visitors", "users", "count", "samples", "sessions", "trials", "impressions", "views"}
_SUCCESS_HEADINGS = {"conversions", "converted", "successes", "clicks", "orders", "purchases", "signups"}
_MEAN_HEADINGS = {"mean", "average", "avg"}
_STD_HEADINGS = {"std", "sd", "stdev", "stddev", "standard deviation"}
_DATE_HEADINGS = {"date", "day", "week", "month", "time", "timestamp", "datetime"}
_ID_HEADINGS = {
    "id",
    "user",
    "user id",
    "userid",
    "visitor",
    "visitor id",
    "session",
    "session id",
    "customer",
}
_PERSON_HEADINGS = _ID_HEADINGS - {"id"}
"""If all of them differ, each row is an observation: a column of their sessions holds no totals of an arm."""
_DATE = re.compile(r"\d{4}-\d{1,2}(-\d{1,2})?([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}( .*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(\.\d{3})+")
_TRUTHS = {"true": "1", "false": "0", "yes": "1", "no": "0"}


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """What a table holds: its `arms`, its `layout` in words, and `notes`, sentences on how it was read."""

    arms: Arms
    layout: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its place from 1, its heading, and its cells with the lines that they stand on."""

    place: int
    heading: str
    cells: tuple[str, ...]
    lines: tuple[int, ...]

    def is_called(self, headings: set[str]) -> bool:
        return " ".join(self.heading.lower().replace("_", " ").split()) in headings

    def is_date(self) -> bool:
        filled = [cell for cell in self.cells if cell]
        return bool(filled) and (
            self.is_called(_DATE_HEADINGS) or all(_DATE.fullmatch(cell) for cell in filled)
        )

    def is_text(self) -> bool:
        """Say whether hardly any filled cell is a number; one word among numbers is a mistake in the file."""
        filled = [cell for cell in self.cells if cell]
        return sum(_is_number(cell) for cell in filled) * 2 < len(filled)

    def number(self, row: int) -> float:
        """Return the number in `row`, or raise an error that names its place."""
        cell = self.cells[row]
        place = f"line {self.lines[row]}, column {self.place} ({self.heading})"
        if not _is_number(cell):
            raise InputError(
                f"Not a number at {place}: {cell!r}." if cell else f"A number is missing at {place}."
            )
        value = float(_without_words(cell))
        if value - value != 0:
            raise InputError(
                f"NaN or infinity at {place}: {cell!r}. Leave the cell blank if there is no sample."
            )
        return value

    def whole_number(self, row: int) -> int:
        if _THOUSANDS.fullmatch(self.cells[row]):
            place = f"line {self.lines[row]}, column {self.place} ({self.heading})"
            raise InputError(f"Write the count at {place} without a separator of thousands.")
        value = self.number(row)
        if value < 0 or value != int(value):
            place = f"line {self.lines[row]}, column {self.place} ({self.heading})"
            raise InputError(
                f"A count must be a whole number of at least 0, not {self.cells[row]!r} at {place}."
            )
        return int(value)


def read_sheet(path: Path) -> Sheet:
    """Read the arms from the file `path`."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"Cannot read {str(path)!r}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not a CSV text file in UTF-8.") from error
    return parse_sheet(text, repr(str(path)))


def parse_sheet(text: str, source: str = "the table") -> Sheet:
    """Return the arms in the CSV `text`; error messages call it `source`."""
    every_column, headed = _columns(text, source)
    columns, notes = _without_dates_and_ids(every_column)
    if not headed:
        notes += ("No header found: the first row counts as samples.",)
    if not columns:
        raise _refusal(source, "has no column of numbers or names")
    arm_columns = [column for column in columns if column.is_called(_ARM_HEADINGS)] or [
        column for column in columns if column.is_text() and any(column.cells)
    ]
    if not headed or not arm_columns:
        if any(column.is_called(_COUNT_HEADINGS) for column in columns) and any(
            column.is_called(_SUCCESS_HEADINGS | _MEAN_HEADINGS) for column in columns
        ):
            raise _refusal(source, "has totals, but no column that names the arms. Call it 'variant'")
        return _one_column_per_arm(columns, notes, source)
    if len(arm_columns) > 1:
        names = " or ".join(repr(column.heading) for column in arm_columns)
        raise _refusal(source, f"does not say which column names the arms: {names}? Call it 'variant'")
    others = [column for column in columns if column is not arm_columns[0]]
    has_a_row_each = any(
        column.is_called(_PERSON_HEADINGS) and len(set(column.cells)) == len(column.cells)
        for column in every_column
    )
    totals = None if has_a_row_each else _totals(arm_columns[0], others, notes)
    return totals or _one_row_per_observation(arm_columns[0], others, notes, source)


def _columns(text: str, source: str) -> tuple[list[_Column], bool]:
    """Return the columns that are not blank, and whether the first row names them."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    mark = _delimiter(lines)
    reader = csv.reader(lines, delimiter=mark)
    try:
        rows = [(reader.line_num, [_cleaned(cell, mark) for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise InputError(f"{source} is not a CSV text file in UTF-8.") from error
    rows = [row for row in rows if any(row[1])]
    if not rows:
        raise InputError(f"{source} is empty.")
    width = max(i + 1 for _, cells in rows for i, cell in enumerate(cells) if cell)
    headed = not any(_is_number(cell) for cell in rows[0][1])
    header = rows.pop(0)[1] if headed else []
    numbers = tuple(line for line, _ in rows)
    columns = []
    for i in range(width):
        heading = header[i] if i < len(header) and header[i] else f"arm {i + 1}"
        cells = tuple(cells[i] if i < len(cells) else "" for _, cells in rows)
        columns.append(_Column(i + 1, heading, cells, numbers))
    return columns, headed


def _delimiter(lines: Sequence[str]) -> str:
    """Return the mark on most lines. A tie goes to the earlier one: commas may be decimal commas."""
    return max("\t;,", key=lambda mark: sum(mark in line for line in lines))


def _cleaned(cell: str, mark: str) -> str:
    cell = " ".join(cell.split())
    if mark != "," and _DECIMAL_COMMA.fullmatch(cell):
        return cell.replace(",", ".")
    return cell


def _without_words(cell: str) -> str:
    """Return a cell with 1 for yes and true, and 0 for no and false."""
    return _TRUTHS.get(cell.lower(), cell)


def _is_number(cell: str) -> bool:
    try:
        float(_without_words(cell))
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, but a file hardly means it


def _without_dates_and_ids(columns: list[_Column]) -> tuple[list[_Column], tuple[str, ...]]:
    left_out = [
        column
        for column in columns
        if (column.is_date() or column.is_called(_ID_HEADINGS)) and not column.is_called(_ARM_HEADINGS)
    ]
    notes = tuple(
        f"The column {column.heading!r} was left out: it holds "
        f"{'dates' if column.is_date() else 'identifiers'}."
        for column in left_out
    )
    return [column for column in columns if column not in left_out], notes


def _one_column_per_arm(columns: list[_Column], notes: tuple[str, ...], source: str) -> Sheet:
    if len(columns) == 1:
        raise _refusal(
            source, "has one column; it needs two or more, separated by commas, semicolons or tabs"
        )
    samples = []
    for column in columns:
        filled = [row for row, cell in enumerate(column.cells) if cell]
        samples.append([column.number(row) for row in filled])
        real_numbers(f"samples of {column.heading!r}", samples[-1])
    arms = Arms.from_samples(samples, [column.heading for column in columns])
    return Sheet(arms, "one column of samples per arm", notes)


def _totals(names: _Column, columns: list[_Column], notes: tuple[str, ...]) -> Sheet | None:
    """Return the arms of a table with one row per arm or per arm and day; None if it is no such table."""

    def called(headings: set[str]) -> _Column | None:
        return next((column for column in columns if column.is_called(headings)), None)

    counts, successes = called(_COUNT_HEADINGS), called(_SUCCESS_HEADINGS)
    means, stds = called(_MEAN_HEADINGS), called(_STD_HEADINGS)
    if counts is None or (successes is None and (means is None or stds is None)):
        return None
    if not names.cells:
        raise InputError("The table has a header, but no rows below it.")
    rows = range(len(names.cells))
    labels = [_label(names, row) for row in rows]
    n = [counts.whole_number(row) for row in rows]
    if successes is None:
        assert means is not None  # checked above
        assert stds is not None
        arms = Arms.from_moments(
            n, [means.number(row) for row in rows], [stds.number(row) for row in rows], labels
        )
        return Sheet(arms, "one row per arm: n, mean, std", notes)
    summed: dict[str, list[int]] = {}
    for label, row in zip(labels, rows, strict=True):
        total = summed.setdefault(label, [0, 0])
        total[0] += n[row]
        total[1] += successes.whole_number(row)
    if len(summed) < len(labels):
        notes += (f"The {len(labels)} rows were added up by {names.heading!r}.",)
    visitors, conversions = zip(*summed.values(), strict=True)
    arms = Arms.from_successes(visitors, conversions, list(summed))
    return Sheet(arms, f"one row per arm: {counts.heading}, {successes.heading}", notes)


def _one_row_per_observation(
    names: _Column, columns: list[_Column], notes: tuple[str, ...], source: str
) -> Sheet:
    outcomes = [column for column in columns if any(column.cells)]
    if len(outcomes) != 1:
        found = ", ".join(repr(column.heading) for column in outcomes) or "none"
        raise _refusal(source, f"needs one column of outcomes beside {names.heading!r}, but has {found}")
    outcome = outcomes[0]
    filled = [cell for cell in outcome.cells if cell]
    if blank := len(outcome.cells) - len(filled):
        if all(_is_number(cell) and float(_without_words(cell)) == 1 for cell in filled):
            raise _refusal(
                source,
                f"has only successes (1) and blank cells in {outcome.heading!r}: "
                "write 0 where nothing happened",
            )
        notes += (f"Left out: {blank:,} of {len(outcome.cells):,} rows, blank in {outcome.heading!r}.",)
    samples: dict[str, list[float]] = {}
    for row, cell in enumerate(outcome.cells):
        if cell:
            samples.setdefault(_label(names, row), []).append(outcome.number(row))
    if len(samples) * 2 > sum(map(len, samples.values())):
        raise _refusal(source, f"has {len(samples)} different names in {names.heading!r}, most of them once")
    for name, values in samples.items():
        real_numbers(f"samples of {name!r}", values)
    arms = Arms.from_samples([np.array(values) for values in samples.values()], list(samples))
    return Sheet(arms, f"one row per observation: {names.heading}, {outcome.heading}", notes)


def _label(names: _Column, row: int) -> str:
    if not names.cells[row]:
        raise InputError(f"The arm's name is missing at line {names.lines[row]} ({names.heading}).")
    return names.cells[row]


def _refusal(source: str, reason: str) -> InputError:
    return InputError(f"{source} {reason}. Layouts that are understood: {LAYOUTS}.")
