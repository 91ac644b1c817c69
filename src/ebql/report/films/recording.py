"""Record a trained agent while it plays, with its members' Q-values beside the picture."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ebql.errors import InputError
from ebql.report.films.encoding import film, require_film
from ebql.report.films.screen import Screen, images
from ebql.runs import output_folder, write_bytes

if TYPE_CHECKING:
    from ebql.deep.evaluation.watching import Moment

_USUAL_FPS = 10
_FASTEST = 50


def record(
    path: Path,
    out: Path | None = None,
    *,
    episodes: int = 1,
    seed: int = 0,
    max_steps: int = 1_000,
    fps: int | None = None,
    environment: str | None = None,
    accept_changes: bool = False,
    follow: Callable[[Iterable["Moment"]], Iterator["Moment"]] = iter,
) -> Path:
    """Write a film of the agent in a run folder, or of a saved agent; return the film's path.

    `out` is FILE.gif or FILE.mp4; by default watch.gif in the run folder, or beside the agent. An episode is
    cut after `max_steps`. `fps` is by default the environment's own rate, or 10. `environment` is the one
    to play in, as a user typed it; by default the agent's own. A file that was changed by hand is refused
    unless `accept_changes`. `follow` passes the moments on, and may show progress.
    """
    from ebql.deep.agents import AGENTS
    from ebql.deep.building import protocol_of
    from ebql.deep.evaluation.watching import watched
    from ebql.deep.saving import load
    from ebql.environments.modules import environment_named
    from ebql.environments.pictures import action_names, make_pictured

    about, _ = load(path, accept_changes=accept_changes)
    title = environment or about["environment"]
    if title is None:
        raise InputError("This agent's environment was a Python object: add --environment module:Name.")
    beside = path.with_name(f"{path.name.removesuffix('.safetensors')}.gif")
    out = out or (path / "watch.gif" if path.is_dir() else beside)
    # Some environments would open a display even to draw into memory.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    agent = AGENTS[about["agent"]].load(path, accept_changes=accept_changes)
    source = title if environment is None else environment_named(environment)
    world = make_pictured(source, protocol=protocol_of(agent.config))
    fps = fps if fps is not None else min(world.metadata.get("render_fps") or _USUAL_FPS, _FASTEST)
    require_film(out.suffix, fps)
    names, pessimistic = action_names(world), agent.config.ensemble().pessimistic
    screen = Screen(title, names, agent.ensemble_size, pessimistic=pessimistic)
    try:
        moments = watched(agent, world, episodes=episodes, seed=seed, max_steps=max_steps)
        output_folder(out.parent)
        content = film(images(follow(moments), screen, hold=fps), out.suffix, fps)
    finally:
        world.close()
    return write_bytes(out, content)
