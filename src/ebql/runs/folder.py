"""The folder of a run: its configuration, its metrics and its checkpoints."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebql.errors import InputError
from ebql.runs.checkpoints import CheckpointStore
from ebql.runs.files import PARTIAL, decoded, open_unlinked, output_folder, refuse_links, write_json
from ebql.runs.locking import exclusive
from ebql.runs.metrics import MetricsLog, last_records
from ebql.runs.provenance import provenance
from ebql.runs.seals import ACCEPT, SEAL, content_seal
from ebql.typed import count, typed

FORMAT = "ebql run 1"
_CONFIG, _METRICS, _TIMING, _CHECKPOINTS = "config.json", "metrics.jsonl", "timing.jsonl", "checkpoints"
_LOCK = ".lock"
# Whatever a run reads or writes in its folder.
_OWN = (_CONFIG, _METRICS, _TIMING, _CHECKPOINTS, _LOCK, "attempts.jsonl", "events", "seeds.npz")
_ACCEPTED = "accepted_changes"
# The types that readers of a run, or of a saved agent, rely on, for keys that are present.
_KINDS: dict[str, Any] = {
    "kind": str,
    "label": str | None,
    "agent": str,
    "environment": str | None,
    "options": dict,
    "observation": dict,
    "first_action": int,
    "own": dict[str, str],
    "data": dict,
    "preset": str | None,
    "date": str,
    "versions": dict,
    _ACCEPTED: list[str],
    "resumed_with": list,
}
_COUNTS = ("steps", "n_actions", "updates", "trained_steps")
"""Keys that are whole numbers of at least 0."""


def require_kinds(about: Mapping[str, Any], refusal: str) -> None:
    """Raise an error if a value of `about` has the wrong type; its message starts with `refusal`.

    >>> try:
    ...     require_kinds({"agent": "ebql", "steps": "many"}, "config.json")
    ... except InputError as error:
    ...     print(error)
    config.json says steps 'many'.
    """
    for key, value in about.items():
        try:
            if key in _COUNTS:
                count(value)
            elif key in _KINDS:
                typed(_KINDS[key], value)
        except TypeError as error:
            raise InputError(f"{refusal} says {key} {value!r:.60}.") from error


@dataclass(frozen=True)
class RunFolder:
    """A folder with `config.json`, `metrics.jsonl`, `checkpoints/` and other files of a run.

    >>> folder = RunFolder.create("runs/mine", {"kind": "deep", "agent": "ebql", "steps": 100})
    >>> with folder.metrics(position=0) as log:
    ...     log.append({"step": 50, "loss": 0.25})
    >>> again = RunFolder.open("runs/mine")
    >>> again.config["agent"], again.last_step()
    ('ebql', 50)
    """

    path: Path
    """Where it is."""
    config: dict[str, Any]
    """The content of `config.json`: what `create` was given, and format, date, command, versions, commit."""
    sealed: bool = True
    """Whether `config.json` has a seal; those written by version 0.1 have none."""
    changed: bool = False
    """Whether `config.json` was changed after it was written, and the change has not been recorded yet."""

    @classmethod
    def create(
        cls, path: str | Path, about: Mapping[str, Any], command: Sequence[str] | None = None
    ) -> "RunFolder":
        """Begin a run in `path`; `about` says what it is: kind, label, agent, options, environment, steps.

        Raises an error if the folder holds another run or parts of one.
        """
        with cls.begun(path, about, command) as folder:
            return folder

    @classmethod
    @contextmanager
    def begun(
        cls, path: str | Path, about: Mapping[str, Any], command: Sequence[str] | None = None
    ) -> Iterator["RunFolder"]:
        """Begin a run as `create` does, and keep it locked: of two that begin at once, one is refused."""
        require_kinds(about, "The new run")
        folder = output_folder(path)
        refuse_links(folder, _OWN)
        with exclusive(folder / _LOCK, _refusal(folder)):
            if any((folder / name).exists() for name in (_CONFIG, _METRICS, _CHECKPOINTS)):
                raise InputError(
                    f"The folder {str(folder)!r} holds another run: resume it (ebql resume {folder}) "
                    "or choose another folder."
                )
            for leftover in folder.glob(f".{_CONFIG}.*{PARTIAL}"):  # of one that was killed right here
                leftover.unlink(missing_ok=True)
            config = {"format": FORMAT, **about, **provenance(command)}
            write_json(folder / _CONFIG, {**config, SEAL: content_seal(config)})
            yield cls.open(folder)

    @classmethod
    def open(cls, path: str | Path, *, accept_changes: bool = False) -> "RunFolder":
        """Open the run in `path`; raise an error if the folder is not a run, or its config was changed."""
        folder = Path(path)
        if not folder.is_dir():
            raise InputError(f"There is no run folder {str(folder)!r}.")
        refusal = f"{str(folder)!r} is not a run folder: its {_CONFIG}"
        try:
            refuse_links(folder, _OWN)
            with open_unlinked(folder / _CONFIG, "rb") as file:
                config = decoded(file.read())
        except FileNotFoundError as error:
            raise InputError(f"{str(folder)!r} is not a run folder: it has no {_CONFIG}.") from error
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise InputError(f"{refusal} cannot be read.") from error
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise InputError(f"{refusal} does not have the format {FORMAT!r}.")
        require_kinds(config, refusal)
        seal = config.pop(SEAL, None)
        changed = seal is not None and seal != content_seal(config)
        if changed and not accept_changes:
            raise InputError(f"{str(folder / _CONFIG)!r} was changed after it was written. {ACCEPT}")
        return cls(folder, config, seal is not None, changed)

    @property
    def accepted(self) -> list[str]:
        """The names of files that were changed by hand, which the user accepted when resuming the run."""
        return list(self.config.get(_ACCEPTED, []))

    def updated(self, **changes: Any) -> "RunFolder":
        """Write `config.json` with these changes, and with a note of a change that was accepted."""
        config = {**self.config, **changes}
        if self.changed:
            config[_ACCEPTED] = sorted({*self.accepted, _CONFIG})
        write_json(self.path / _CONFIG, {**config, SEAL: content_seal(config)})
        return RunFolder(self.path, config)

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

    def metrics(self, position: int, *, accept_changes: bool = False) -> MetricsLog:
        """Open the metrics for appending at `position`: 0 for a new run, otherwise that of the checkpoint.

        If they were changed and that is accepted, `config.json` records it.
        """
        accept_changes = accept_changes or _METRICS in self.accepted
        log = MetricsLog(self.metrics_path, position, accept_changes=accept_changes)
        if log.changed and _METRICS not in self.accepted:
            self.updated(**{_ACCEPTED: sorted({*self.accepted, _METRICS})})
        return log

    def accepting_lost_metrics(self, step: int, *, accept_changes: bool) -> "RunFolder":
        """Refuse a run whose metrics lack the record of `step`; if that is accepted, record it."""
        if accept_changes or _METRICS in self.accepted:
            return self.updated(**{_ACCEPTED: sorted({*self.accepted, _METRICS})})
        raise InputError(f"{str(self.metrics_path)!r} lacks the record of step {step}: it was lost. {ACCEPT}")

    def last_step(self) -> int:
        """Return the step of the last record; 0 if there is none."""
        records = last_records(self.metrics_path)
        return int(records[-1]["step"]) if records else 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run against other writers; the lock ends with the process."""
        with exclusive(self.path / _LOCK, _refusal(self.path)):
            self._delete_leftovers()
            yield

    def wait_until_free(self, patience: float) -> None:
        """Wait until no process works on the run; raise an error after `patience` seconds."""
        with exclusive(self.path / _LOCK, _refusal(self.path), patience):
            self._delete_leftovers()

    def _delete_leftovers(self) -> None:
        """Delete the temporary files of writers that were killed; the lock says that none is at work."""
        for path in self.path.glob(f".*{PARTIAL}"):
            path.unlink(missing_ok=True)
        self.checkpoints.delete_leftovers()


def _refusal(folder: Path) -> str:
    return f"Another process is working on the run {str(folder)!r}."
