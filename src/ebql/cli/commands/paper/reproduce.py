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
    deep_steps: int = 100_000,
    runs: tuple[Path, ...] = (),
    accept_changes: bool = False,
) -> None:
    """Reproduce the paper's figures on estimators and tables, check its claims, and run a short deep study.

    Writes a PNG and a CSV file for each figure, ledger.json with the claims and their evidence, and
    report.html. Takes about a minute on two cores, and about four more for the deep study, which is skipped
    if torch or MinAtar is not installed. Finished parts of the deep study are kept; rerun the command to
    continue.

    table1 and fig6 compare the Atari scores of your runs, however many there are, with the paper's. Runs of
    100,000 steps are also compared with published scores at that length.

    Args:
        figures: Any of fig1 fig2 fig3 fig4 fig5 regimes deep (by default all of these), table1 and fig6.
        out: Folder to write to; created if needed.
        seeds: Random seeds of each agent on the chains, at least 5; the paper uses 50.
        episodes: Episodes of each seed; the paper uses 5000.
        deep_steps: Agent steps of each deep agent on MinAtar Breakout.
        runs: For table1 and fig6: run folders, or folders that contain some.
        accept_changes: For table1 and fig6: include runs that were changed by hand; a note names them.
    """
    from ebql.report.paper.reproduction import check_names

    names = check_names(figures, _ATARI)
    atari = [name for name in _ATARI if name in figures]
    if runs and not atari:
        raise InputError("--runs is for table1 and fig6: ebql reproduce table1 --runs DIR.")
    if names:
        _make(_possible(names, figures), out, seeds, episodes, deep_steps)
    if atari:
        from ebql.cli.commands.paper.atari_scores import scores

        scores(atari, runs, out, accept_changes=accept_changes)


def _possible(names: Sequence[str], asked_for: Sequence[str]) -> list[str]:
    """Return the figures, without the deep study if it cannot be run and was not asked for by name."""
    from ebql.paper.short_study import installed
    from ebql.terminal.console import Console

    if "deep" in asked_for or "deep" not in names or installed():
        return list(names)
    message = 'Skipping the deep study, which needs more packages: pip install "ebql[deep,minatar]"'
    Console(stderr=True).print(message, highlight=False, markup=False, soft_wrap=True)
    return [name for name in names if name != "deep"]


def _make(names: Sequence[str], out: Path, seeds: int, episodes: int, deep_steps: int) -> None:
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table

    from ebql.cli.compiling import announced_compiling
    from ebql.report.paper.reproduction import Reproduction, count_steps
    from ebql.terminal.console import Console

    reproduction = Reproduction(out, seeds=seeds, episodes=episodes, deep_steps=deep_steps)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    progress_console = Console(stderr=True)
    with announced_compiling(progress_console), Progress(*columns, console=progress_console) as bar:
        task = bar.add_task("starting", total=count_steps(names))
        claims = reproduction.make(names, progress=lambda step: bar.update(task, advance=1, description=step))

    table = Table("verdict", "claim", "evidence", box=None, pad_edge=False)
    colours = {"holds": "green", "fails": "red", "mixed": "yellow", "open": "cyan"}
    for claim in claims:
        table.add_row(f"[{colours[claim.verdict]}]{claim.verdict}[/]", claim.name, claim.summary)
    console = Console()
    console.print(table)
    console.print(f"Report: [bold]{escape(str(out / 'report.html'))}[/]", highlight=False, soft_wrap=True)
