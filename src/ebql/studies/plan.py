"""Compare a study with its folder: which runs are finished, which continue, and which are new."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ebql.errors import InputError
from ebql.runs import RunFolder
from ebql.studies.kinds import complete_options, kind_of
from ebql.studies.model import Run, Study
from ebql.studies.tasks import progress


class Planned(NamedTuple):
    """A run, and how much of it is done."""

    run: Run
    folder: Path
    done: int
    """Agent steps (tabular runs: seeds) that are saved in the folder."""

    @property
    def finished(self) -> bool:
        """Whether the run is complete."""
        return self.done >= self.run.length

    @property
    def left(self) -> int:
        """Agent steps (tabular runs: seeds) still to do."""
        return max(0, self.run.length - self.done)


def run_folder(out: str | Path, run: Run) -> Path:
    """Return the folder of a study's run."""
    return Path(out) / "runs" / run.name


def plan(study: Study, out: str | Path) -> list[Planned]:
    """Compare a study with the folder `out`; refuse a study that contradicts an existing run."""
    folders = [(run, run_folder(out, run)) for run in study.runs]
    changes = [change for run, folder in folders for change in _changes(run, folder)]
    if changes:
        more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
        raise InputError(
            f"The study changes an existing run: {changes[0]}{more}. Undo the change, "
            "give the agent another label, or choose another folder."
        )
    planned = [Planned(run, folder, progress(run, folder)) for run, folder in folders]
    for item in planned:
        if not item.finished and item.run.unit == "steps" and item.done and not _has_checkpoint(item.folder):
            raise InputError(
                f"The checkpoints of {item.run.name} were deleted: it cannot continue from step "
                f"{item.done:,} to {item.run.length:,}. Delete its folder to train it again."
            )
    return planned


def _has_checkpoint(folder: Path) -> bool:
    return bool(RunFolder.open(folder).checkpoints.steps())


def _changes(run: Run, folder: Path) -> list[str]:
    """Return, in words, how the run in `folder` differs from the study's."""
    if not (folder / "config.json").exists():
        return []
    existing = _description(RunFolder.open(folder).config)
    wanted = {"kind": run.kind, "agent": run.agent, "environment": run.environment, **run.options}
    return [
        f"{run.name} has {name} {existing.get(name)!r}, the study {wanted.get(name)!r}"
        for name in {**wanted, **existing}
        if existing.get(name) != wanted.get(name)
    ]


def _description(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a `config.json` says about its run, in the terms of a study."""
    about = {"kind": kind_of(config), "agent": config["agent"], "environment": config["environment"]}
    return {**about, **complete_options(config)}
