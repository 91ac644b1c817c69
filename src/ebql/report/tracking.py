"""A run's metrics sent on, as they come, to a tracker that the user has installed: W&B or trackio."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from ebql.errors import InputError

Tracker = Literal["wandb", "trackio"]
Callback = Callable[[Mapping[str, Any]], None]

PROJECT = "ebql"


@contextmanager
def tracked(tracker: Tracker | None, folder: Path, config: Mapping[str, Any]) -> Iterator[Callback]:
    """Yield what sends a record to the tracker, as the run named like its folder; without one, to nobody.

    The tracker's run begins with the first record: one that is refused before leaves no trace there. A
    resumed run is a new run there, in one group with the earlier ones: the steps after the checkpoint are
    made again, and neither tracker takes a step back.
    """
    if tracker is None:
        yield lambda _: None
        return
    package = _imported(tracker)
    started = False

    def send(record: Mapping[str, Any]) -> None:
        nonlocal started
        if not started:
            _start(tracker, package, folder, config)
            started = True
        values = {name: value for name, value in record.items() if name != "step" and value is not None}
        package.log(values, step=record["step"])

    try:
        yield send
    finally:
        if started:
            package.finish()


def _imported(tracker: Tracker) -> Any:
    try:
        return import_module(tracker)
    except ImportError as error:
        raise InputError(f"{tracker} is not installed: pip install {tracker}") from error


def _start(tracker: Tracker, package: Any, folder: Path, config: Mapping[str, Any]) -> None:
    options: dict[str, Any] = {"project": PROJECT, "name": folder.name, "group": folder.name}
    if tracker == "wandb":
        # Offline unless the user says otherwise: a run must neither wait for a login nor need a network.
        options |= {"dir": str(folder), "mode": os.environ.get("WANDB_MODE", "offline")}
    package.init(config=dict(config), **options)
