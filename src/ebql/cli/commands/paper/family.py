"""`ebql family`: all methods side by side, as estimators and as tables."""

from pathlib import Path
from typing import Literal


def family(
    out: Path = Path("results/family"),
    seeds: int = 1000,
    episodes: int = 5000,
    part: Literal["all", "estimators", "tables"] = "all",
) -> None:
    """Compare all methods: the map of estimators, and tables in regimes, bandits, splits and exploration.

    Writes a PNG and a CSV file for each comparison, made_by.json (tables) and estimators.json. The map of
    estimators takes about two minutes. The tables take about an hour of one core; the command prints an
    estimate. Finished parts are kept in OUT/parts: rerun the command to continue, or to draw the pictures
    again. Delete that folder after a change of the code.

    Args:
        out: Folder to write to; created if needed.
        seeds: Random seeds of each agent in each regime, at least 5; the map has 20 replications for each.
        episodes: Episodes of each seed.
        part: Make only the map of estimators, or only the studies of tables.
    """
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ebql.cli.compiling import announced_compiling
    from ebql.report.paper.family import FamilyStudy, count_steps
    from ebql.terminal.console import Console

    study = FamilyStudy(out, seeds=seeds, episodes=episodes, part=part)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    progress_console = Console(stderr=True)
    with announced_compiling(progress_console), Progress(*columns, console=progress_console) as bar:
        minutes = study.core_minutes()
        if minutes > 0:
            bar.console.print(f"About {minutes:.0f} core-minutes are left.", highlight=False)
        task = bar.add_task("starting", total=count_steps(part))
        lines = study.make(lambda step: bar.update(task, advance=1, description=step))
    console = Console()
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"Written to [bold]{escape(str(out))}[/]", highlight=False, soft_wrap=True)
