"""Summarise a study of tables over seeds: `curves.csv` and `summary.csv` in the study's folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ebql.estimators.intervals import interval_ends, over_seeds
from ebql.runs import output_folder, write_csv
from ebql.studies.model import Run
from ebql.studies.plan import Planned
from ebql.studies.tables.runs import CURVE_HEADER, MEASURES, SeedCurves, curve_rows, read_seed_curves


class SummaryRow(NamedTuple):
    """A measure's mean over seeds with its 95% interval, over whole runs or at their end.

    The ends of the interval are None with fewer than `FEWEST_SEEDS` seeds.
    """

    environment: str
    agent: str
    metric: str
    average: str
    seeds: int
    mean: float
    low: float | None
    high: float | None


def summarise(
    planned: Sequence[Planned], out: str | Path, *, accept_changes: bool = False
) -> list[SummaryRow]:
    """Write `curves.csv` and `summary.csv` into the folder `out`, and return the rows of the summary.

    Both hold means over the finished seeds, with 95% intervals.
    """
    curves_by_run = [
        (item.run, curves.of(item.run.seeds))
        for item in planned
        if item.obstacle is None
        and (curves := read_seed_curves(item.folder, accept_changes=accept_changes)) is not None
    ]
    measured = [(run, curves) for run, curves in curves_by_run if len(curves.seeds)]
    folder = output_folder(out)
    over_episodes = (row for run, curves in measured for row in curve_rows(run, curves))
    write_csv(folder / "curves.csv", CURVE_HEADER, over_episodes)
    rows = [row for run, curves in measured for row in summary_rows(run, curves)]
    write_csv(folder / "summary.csv", SummaryRow._fields, rows)
    return rows


def summary_rows(run: Run, curves: SeedCurves) -> Iterator[SummaryRow]:
    """Yield each measure's mean over seeds with its 95% interval, over the whole run and at its end."""
    for name in MEASURES:
        values = curves.metrics[name]
        for average, by_seed in (("whole run", values.mean(1)), ("end", values[:, -1])):
            mean, half_width = map(float, over_seeds(by_seed))
            numbers = len(curves.seeds), mean, *interval_ends(mean, half_width)
            yield SummaryRow(run.environment, run.label, name, average, *numbers)
