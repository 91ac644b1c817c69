"""A study against what its folder holds already: what is done, what goes on, what is new."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ebql.errors import InputError
from ebql.runs import RunFolder
from ebql.studies.definition import Run, Study
from ebql.studies.kinds import complete_options
from ebql.studies.tasks import progress


class Planned(NamedTuple):
    """A run and how much of it there is."""

    run: Run
    folder: Path
    done: int
    """Agent steps, or seeds, that the folder keeps safe."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.done >= self.run.length

    @property
    def left(self) -> int:
        """Agent steps, or seeds, still to do."""
        return max(0, self.run.length - self.done)


def run_folder(out: str | Path, run: Run) -> Path:
    """Return the folder of a study's run."""
    return Path(out) / "runs" / run.name


def plan(study: Study, out: str | Path) -> list[Planned]:
    """Compare a study with the folder `out`; refuse one that would change a run that is there."""
    folders = [(run, run_folder(out, run)) for run in study.runs]
    changes = [told for run, folder in folders for told in _changes(run, folder)]
    if changes:
        more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
        raise InputError(
            f"The study changes a run that exists: {changes[0]}{more}. Take the change back, "
            "or give the agent another label, or the study another folder."
        )
    planned = [Planned(run, folder, progress(run, folder)) for run, folder in folders]
    for item in planned:
        if not item.finished and item.run.unit == "steps" and item.done and not _has_checkpoint(item.folder):
            raise InputError(
                f"The checkpoints of {item.run.name} were deleted: it can't go on from step {item.done:,} to "
                f"{item.run.length:,}. Remove its folder to train it anew."
            )
    return planned


def _has_checkpoint(folder: Path) -> bool:
    return bool(RunFolder.open(folder).checkpoints.steps())


def _changes(run: Run, folder: Path) -> list[str]:
    """Return, in words, where the run in `folder` differs from what the study wants."""
    if not (folder / "config.json").exists():
        return []
    there = _described(RunFolder.open(folder).config)
    here = {"floor": run.floor, "agent": run.agent, "environment": run.environment, **run.options}
    return [
        f"{run.name} has {name} {there.get(name)!r}, the study {here.get(name)!r}"
        for name in {**here, **there}
        if there.get(name) != here.get(name)
    ]


def _described(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's folder says of it; options that its version did not know have their defaults."""
    about = {"agent": config["agent"], "environment": config["environment"]}
    return {"floor": config.get("floor", "deep"), **about, **complete_options(config)}
