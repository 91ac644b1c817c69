"""Send the metrics of a run to an experiment tracker that the user has installed: W&B or trackio."""

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
    """Yield a function that sends a record to the tracker; it does nothing without a tracker.

    The tracker's run has the name of the run folder. It starts with the first record, so a run that is
    refused before that leaves no trace. A resumed run is a new run of the tracker, in the same group: it
    repeats the steps after the checkpoint, and neither tracker accepts a step twice.
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
        # Offline by default: a run must neither wait for a login nor need a network.
        options |= {"dir": str(folder), "mode": os.environ.get("WANDB_MODE", "offline")}
    package.init(config=dict(config), **options)
