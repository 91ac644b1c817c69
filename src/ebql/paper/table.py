"""A table: the data of one figure, as it is written to a CSV file."""

from dataclasses import dataclass

Row = tuple[object, ...]


@dataclass(frozen=True)
class Table:
    """Named columns and rows. A column `interval` holds half-widths of 95% intervals."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
