"""The folder of a run: its configuration, its metrics and its checkpoints."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebql.errors import InputError
from ebql.runs.checkpoints import CheckpointStore
from ebql.runs.files import PARTIAL, output_folder, write_json
from ebql.runs.locking import exclusive
from ebql.runs.metrics import MetricsLog, last_records
from ebql.runs.provenance import provenance

FORMAT = "ebql run 1"
_CONFIG, _METRICS, _TIMING, _CHECKPOINTS = "config.json", "metrics.jsonl", "timing.jsonl", "checkpoints"
_LOCK = ".lock"
# The types that readers of a run, or of a saved agent, rely on, for keys that are present.
_KINDS = {
    "kind": str,
    "label": str | None,
    "agent": str,
    "environment": str | None,
    "options": dict,
    "steps": int,
    "observation": dict,
    "n_actions": int,
    "updates": int,
    "trained_steps": int,
    "own": dict,
    "data": dict,
}


def require_kinds(about: Mapping[str, Any], refusal: str) -> None:
    """Raise an error if a value of `about` has the wrong type; its message starts with `refusal`."""
    for key, kind in _KINDS.items():
        if key in about and not isinstance(about[key], kind):
            raise InputError(f"{refusal} says {key} {about[key]!r}.")


@dataclass(frozen=True)
class RunFolder:
    """A folder with `config.json`, `metrics.jsonl`, `checkpoints/` and other files of a run."""

    path: Path
    config: dict[str, Any]
    """The content of `config.json`: what `create` was given, and format, date, command, versions, commit."""

    @classmethod
    def create(
        cls, path: str | Path, about: Mapping[str, Any], command: Sequence[str] | None = None
    ) -> "RunFolder":
        """Begin a run in `path`; `about` says what it is: kind, label, agent, options, environment, steps.

        Raises an error if the folder holds another run or parts of one.
        """
        folder = Path(path)
        if any((folder / name).exists() for name in (_CONFIG, _METRICS, _CHECKPOINTS)):
            raise InputError(
                f"The folder {str(folder)!r} holds another run: resume it (ebql resume {folder}) "
                "or choose another folder."
            )
        output_folder(folder)
        config = {
            "format": FORMAT,
            **about,
            **provenance(command),
        }
        write_json(folder / _CONFIG, config)
        return cls.open(folder)

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Open the run in `path`; raise an error if the folder is not a run."""
        folder = Path(path)
        if not folder.is_dir():
            raise InputError(f"There is no run folder {str(folder)!r}.")
        try:
            config = json.loads((folder / _CONFIG).read_bytes())
        except FileNotFoundError as error:
            raise InputError(f"{str(folder)!r} is not a run folder: it has no {_CONFIG}.") from error
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{str(folder)!r} is not a run folder: its {_CONFIG} cannot be read.") from error
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise InputError(
                f"{str(folder)!r} is not a run folder: its {_CONFIG} does not have the format {FORMAT!r}."
            )
        require_kinds(config, f"{str(folder)!r} is not a run folder: its {_CONFIG}")
        return cls(folder, config)

    @property
    def metrics_path(self) -> Path:
        """The path of the metrics."""
        return self.path / _METRICS

    @property
    def timing_path(self) -> Path:
        """The path of timing and memory records, which a resumed run cannot reproduce."""
        return self.path / _TIMING

    @property
    def checkpoints(self) -> CheckpointStore:
        """The checkpoints of the run."""
        return CheckpointStore(self.path / _CHECKPOINTS)

    def metrics(self, position: int) -> MetricsLog:
        """Open the metrics for appending at `position`: 0 for a new run, otherwise that of the checkpoint."""
        return MetricsLog(self.metrics_path, position)

    def last_step(self) -> int:
        """Return the step of the last record; 0 if there is none."""
        records = last_records(self.metrics_path)
        return int(records[-1]["step"]) if records else 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run against other writers; the lock ends with the process."""
        with exclusive(self.path / _LOCK, self._refusal()):
            self._delete_leftovers()
            yield

    def wait_until_free(self, patience: float) -> None:
        """Wait until no process works on the run; raise an error after `patience` seconds."""
        with exclusive(self.path / _LOCK, self._refusal(), patience):
            self._delete_leftovers()

    def _delete_leftovers(self) -> None:
        """Delete the temporary files of writers that were killed; the lock says that none is at work."""
        for path in self.path.glob(f".*{PARTIAL}"):
            path.unlink(missing_ok=True)
        self.checkpoints.delete_leftovers()

    def _refusal(self) -> str:
        return f"Another process is working on the run {str(self.path)!r}."
