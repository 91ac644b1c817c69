"""`ebql family`: every tabular method side by side, and the adaptive split against the fixed ones."""

from pathlib import Path


def family(out: Path = Path("results/family"), seeds: int = 1000, episodes: int = 5000) -> None:
    """Compare the whole family of tabular methods: regime map, biases, bandits, splits, exploration.

    Writes a PNG and a CSV file for each comparison, and made_by.json. Takes about 15 minutes on two cores.

    Args:
        out: Folder to write to; created if needed.
        seeds: Random seeds of each agent in each regime, at least 5.
        episodes: Episodes of each seed.
    """
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ebql.cli.compiling import compiling_told
    from ebql.cli.console import Console
    from ebql.report.paper.family import FamilyStudy, count_steps

    study = FamilyStudy(out, seeds=seeds, episodes=episodes)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    progress_console = Console(stderr=True)
    with compiling_told(progress_console), Progress(*columns, console=progress_console) as bar:
        task = bar.add_task("starting", total=count_steps())
        told = study.make(lambda step: bar.update(task, advance=1, description=step))
    console = Console()
    for line in told:
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"Written to [bold]{escape(str(out))}[/]", highlight=False, soft_wrap=True)
