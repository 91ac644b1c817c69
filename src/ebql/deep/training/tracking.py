"""Send the metrics of a run to an experiment tracker that the user has installed: W&B or trackio."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from ebql.errors import InputError, unknown_name

Tracker = Literal["wandb", "trackio"]
Send = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Tracking:
    """Where metrics go: `learn(50_000, track=Tracking("wandb", project="mine", name="first"))`.

    >>> Tracking("wandb", name="first")
    Tracking(tracker='wandb', project='ebql', name='first', group=None)
    """

    tracker: Tracker
    """The package that is called."""
    project: str = "ebql"
    """The project that the run belongs to."""
    name: str | None = None
    """The name of the tracker's run; by default that of the folder, or AGENT-ENVIRONMENT without one."""
    group: str | None = None
    """What runs that belong together have in common; by default the name."""

    @classmethod
    def of(cls, track: "Tracking | Tracker | None") -> "Tracking | None":
        """Return what the user asked for; refuse a tracker that is unknown or not installed."""
        if track is None:
            return None
        tracking = track if isinstance(track, cls) else cls(track)  # type: ignore[arg-type]
        if tracking.tracker not in get_args(Tracker):
            raise unknown_name("tracker", str(tracking.tracker), get_args(Tracker))
        tracking._package()
        return tracking

    @contextmanager
    def sending(self, folder: Path | None, about: Mapping[str, Any]) -> Iterator[Send]:
        """Yield a function that sends a record to the tracker. `about` is the description of the agent.

        The tracker's run starts with the first record, so a run that is refused before that leaves no
        trace. A resumed run is a new run of the tracker, in the same group: it repeats the steps after the
        checkpoint, and neither tracker accepts a step twice.
        """
        package, started = self._package(), False

        def send(record: Mapping[str, Any]) -> None:
            nonlocal started
            if not started:
                package.init(**self._options(folder, about))
                started = True
            values = {name: value for name, value in record.items() if name != "step" and value is not None}
            package.log(values, step=record["step"])

        try:
            yield send
        finally:
            if started:
                package.finish()

    def _options(self, folder: Path | None, about: Mapping[str, Any]) -> dict[str, Any]:
        config = {name: about.get(name) for name in ("agent", "environment", "options")}
        default = f"{config['agent']}-{config['environment']}" if folder is None else folder.name
        name = self.name or default
        options = {"project": self.project, "name": name, "group": self.group or name, "config": config}
        if self.tracker == "wandb":
            # Offline by default: a run must neither wait for a login nor need a network.
            options["mode"] = os.environ.get("WANDB_MODE", "offline")
            if folder is not None:
                options["dir"] = str(folder)
        return options

    def _package(self) -> Any:
        try:
            return import_module(self.tracker)
        except ImportError as error:
            raise InputError(f"{self.tracker} is not installed: pip install {self.tracker}") from error
