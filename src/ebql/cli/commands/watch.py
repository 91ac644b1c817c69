"""`ebql watch`: a video of a trained agent, with the members' Q-values beside the picture."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ebql.cli.importing import Imports, import_named
from ebql.terminal.console import Console

if TYPE_CHECKING:
    from ebql.deep.evaluation.watching import Moment


def watch(
    path: tyro.conf.Positional[Path],
    episodes: int = 1,
    out: Path | None = None,
    seed: int = 0,
    max_steps: int = 1_000,
    fps: int | None = None,
    environment: str | None = None,
    accept_changes: bool = False,
    imports: Imports = (),
) -> None:
    """Record a video of a trained agent, with its members' Q-values beside the picture.

    Args:
        path: A run folder, or a saved agent.
        episodes: How many episodes to play.
        out: The video, FILE.gif or FILE.mp4; by default watch.gif in the run folder, or beside the agent.
        seed: The seed of the episodes.
        max_steps: Agent steps after which an episode is cut.
        fps: Agent steps shown per second; by default the environment's own rate, or 10.
        environment: Play here: an id, or module:Name of a class that takes render_mode="rgb_array".
        accept_changes: Continue even though the file was changed by hand.
        imports: Import this module first, which may register environments or agents; can be repeated.
    """
    import_named(imports)
    from ebql.cli.commands.train import agent_types

    agent_types()  # says what to install if torch is missing
    from ebql.report.films.recording import record

    written = record(
        path,
        out,
        episodes=episodes,
        seed=seed,
        max_steps=max_steps,
        fps=fps,
        environment=environment,
        accept_changes=accept_changes,
        follow=lambda moments: _shown(moments, episodes),
    )
    Console(stderr=True).print(f"→ {written}", highlight=False, markup=False, soft_wrap=True)


def _shown(moments: Iterable["Moment"], episodes: int) -> Iterator["Moment"]:
    """Pass the moments on, and show progress in a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[line]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("filming", total=episodes, line="")
        for moment in moments:
            yield moment
            where = f"episode {moment.episode + 1} of {episodes}  step {moment.step:,}"
            line = f"{where}  reward {moment.score:,.6g}"
            bar.update(task, completed=moment.episode + moment.ended, line=line)
