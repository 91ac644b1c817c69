"""`ebql reproduce`: the paper's figures, the ledger of its claims, a report; and its Atari table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from ebql.errors import InputError

_ATARI = ("table1", "fig6")


def reproduce(
    figures: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    /,
    out: Path = Path("reproduction"),
    seeds: int = 50,
    episodes: int = 5000,
    runs: tuple[Path, ...] = (),
) -> None:
    """Reproduce the paper's figures on estimators and tables, and judge its claims.

    Writes a PNG and a CSV file for each figure; ledger.json with every claim that they bear on, and its
    evidence; and report.html to read. Takes about a minute on two cores.

    table1 and fig6 are the paper's Atari scores: they read runs, however many there are, and put them
    beside the paper's.

    Args:
        figures: Any of fig1 fig2 fig3 fig4 fig5 regimes, all of them if none is named; table1 and fig6.
        out: Folder to write to; it is created if need be.
        seeds: Random seeds of each agent on the chains; the paper has 50.
        episodes: Episodes of each seed; the paper has 5000.
        runs: For table1 and fig6: run folders, or folders that hold some.
    """
    from ebql.report.reproduction import check_names

    names = check_names(figures, _ATARI)
    atari = [name for name in _ATARI if name in figures]
    if runs and not atari:
        raise InputError("--runs is for table1 and fig6: ebql reproduce table1 --runs DIR.")
    if names:
        _chains(names, out, seeds, episodes)
    if atari:
        from ebql.cli.scores import scores

        scores(atari, runs, out)


def _chains(names: Sequence[str], out: Path, seeds: int, episodes: int) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table

    from ebql.report.reproduction import Reproduction, count_steps

    reproduction = Reproduction(out, seeds=seeds, episodes=episodes)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=count_steps(names))
        claims = reproduction.make(names, progress=lambda step: bar.update(task, advance=1, description=step))

    table = Table("verdict", "claim", "evidence", box=None, pad_edge=False)
    colours = {"holds": "green", "fails": "red", "mixed": "yellow"}
    for claim in claims:
        table.add_row(f"[{colours[claim.verdict]}]{claim.verdict}[/]", claim.name, claim.summary)
    console = Console()
    console.print(table)
    console.print(f"Read [bold]{escape(str(out / 'report.html'))}[/]", highlight=False, soft_wrap=True)
