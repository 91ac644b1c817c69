"""`ebql publish`: an agent in the layout of the Hugging Face Hub."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tyro

from ebql.cli.importing import Imports, import_named
from ebql.errors import InputError
from ebql.terminal.console import Console


def publish(
    path: tyro.conf.Positional[Path],
    to: str,
    film: bool = True,
    episodes: int = 100,
    seed: int = 0,
    accept_changes: bool = False,
    imports: Imports = (),
) -> None:
    """Publish a trained agent on the Hugging Face Hub, or write the same files into a folder.

    The files are the weights (safetensors), the config, the results of an evaluation, a film, and a model
    card. Load the agent with EBQL.from_hub("user/name"), or with the path of the folder.

    Args:
        path: A run folder, or a saved agent.
        to: user/name on the Hub, or a folder: ./FOLDER.
        film: Also record a film of one episode.
        episodes: Episodes of the evaluation.
        seed: The seed of the evaluation and of the film.
        accept_changes: Publish even though files of the run or agent were changed by hand.
        imports: Import this module first, which may register environments of your own; can be repeated.
    """
    import_named(imports)
    from ebql.cli.commands.train import agent_types

    kinds = agent_types()
    from ebql.deep.saving import load
    from ebql.deep.sharing.hub import is_repository, require_hub, upload

    require_hub()
    about, _ = load(path, accept_changes=accept_changes)
    if about["environment"] is None:
        raise InputError("This agent's environment was a Python object, so it cannot be evaluated here.")
    console = Console(stderr=True)
    if not is_repository(to):
        folder = Path(to)
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"The folder {to!r} is not empty: choose another one.")
        _write(folder, path, about, kinds, to, film, episodes, seed, accept_changes)
        console.print(f"→ {folder}", highlight=False, markup=False, soft_wrap=True)
        return
    with tempfile.TemporaryDirectory() as temporary:
        _write(Path(temporary), path, about, kinds, to, film, episodes, seed, accept_changes)
        with console.status(f"sending to {to}"):
            address = upload(Path(temporary), to)
    console.print(f"→ {address}", highlight=False, markup=False, soft_wrap=True)


def _write(
    folder: Path,
    path: Path,
    about: Mapping[str, Any],
    kinds: Mapping[str, Any],
    name: str,
    film: bool,
    episodes: int,
    seed: int,
    accept_changes: bool,
) -> None:
    """Evaluate and film the agent, and write its folder."""
    from ebql.cli.commands.watch import watch
    from ebql.report.publishing import FILM, write_hub_folder

    with Console(stderr=True).status(f"evaluating {episodes} episodes"):
        agent = kinds[about["agent"]].load(path, accept_changes=accept_changes)
        # A Python object that evaluations used is not in the file: the environment in training stands in.
        is_lost = about.get("evaluation_environment", "") is None
        evaluation = agent.evaluate(
            episodes, seed=seed, environment=about["environment"] if is_lost else None
        )
    write_hub_folder(folder, agent, about, evaluation, name)
    if film:
        watch(path, out=folder / FILM, seed=seed, accept_changes=accept_changes)
