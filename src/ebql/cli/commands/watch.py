"""`ebql watch`: a video of a trained agent, with the members' Q-values beside the picture."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import tyro
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ebql.cli.console import Console
from ebql.cli.importing import Imports, import_named
from ebql.errors import InputError

if TYPE_CHECKING:
    from ebql.deep.evaluation.watching import Moment

_USUAL_FPS = 10
_FASTEST = 50


def watch(
    path: tyro.conf.Positional[Path],
    episodes: int = 1,
    out: Path | None = None,
    seed: int = 0,
    max_steps: int = 1_000,
    fps: int | None = None,
    imports: Imports = (),
) -> None:
    """Record a video of a trained agent, with its members' Q-values beside the picture.

    Args:
        path: a run folder, or a saved agent.
        episodes: how many episodes to play.
        out: the video, FILE.gif or FILE.mp4; by default watch.gif in the run folder, or beside the agent.
        seed: the seed of the episodes.
        max_steps: agent steps after which an episode is cut.
        fps: agent steps shown a second; by default the environment's own rate, or 10.
        imports: import this module first, which may register environments of your own; can be repeated.
    """
    import_named(imports)
    from ebql.cli.commands.train import agent_types

    kinds = agent_types()  # says what to install if torch is missing
    from ebql.deep.saving import load
    from ebql.runs import output_folder, write_bytes

    about, _ = load(path)
    if about["environment"] is None:
        raise InputError(
            "This agent's environment was a Python object: record it with ebql.deep.evaluation.watching."
        )
    out = out or (path / "watch.gif" if path.is_dir() else path.with_suffix(".gif"))
    # Some environments would open a display even to draw into memory.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

    from ebql.deep.building import protocol_of
    from ebql.deep.evaluation.watching import watched
    from ebql.environments.pictures import action_names, make_pictured
    from ebql.report.films.encoding import film, require_film
    from ebql.report.films.screen import Screen, images

    agent = kinds[about["agent"]].load(path)
    environment = make_pictured(about["environment"], protocol=protocol_of(agent.config))
    fps = fps if fps is not None else min(environment.metadata.get("render_fps") or _USUAL_FPS, _FASTEST)
    require_film(out.suffix, fps)
    names, pessimistic = action_names(environment), agent.config.ensemble().pessimistic
    screen = Screen(about["environment"], names, agent.ensemble_size, pessimistic=pessimistic)
    try:
        moments = watched(agent, environment, episodes=episodes, seed=seed, max_steps=max_steps)
        output_folder(out.parent)
        content = film(images(_shown(moments, episodes), screen, hold=fps), out.suffix, fps)
    finally:
        environment.close()
    write_bytes(out, content)
    Console(stderr=True).print(f"→ {out}", highlight=False, soft_wrap=True)


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
