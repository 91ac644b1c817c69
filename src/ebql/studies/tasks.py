"""Perform one run of a study, from its last saved state to its end: what every runner calls."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ebql.deep.training.tracking import Tracking
from ebql.environments.modules import import_modules
from ebql.errors import InputError
from ebql.runs import Attempts, RunFolder, errors_in_one_line
from ebql.studies.model import Run
from ebql.studies.tables.runs import learn_tables, seeds_done

# How long to wait for the lock of a run. A worker that is shutting down may still be saving its last
# checkpoint; after a machine fails, an NFS server keeps its lock until the lease ends (by default 90 s).
PATIENCE_SECONDS = 180.0


@dataclass(frozen=True)
class Task:
    """A run to perform."""

    run: Run
    folder: str
    cpus: int
    command: tuple[str, ...]
    """The command that started the study; the run records it."""
    imports: tuple[str, ...] = ()
    """The modules that the user wants imported first: they may register environments."""
    accept_changes: bool = False
    """Whether to continue a run whose files were changed by hand."""
    tracking: Tracking | None = None
    """The tracker that metrics also go to."""

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON-able values."""
        tracking = None if self.tracking is None else asdict(self.tracking)
        return {**vars(self), "run": self.run.to_json(), "tracking": tracking}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Task":
        """Rebuild a task from the output of `to_json`, decoded from JSON."""
        return cls(
            Run.from_json(content["run"]),
            content["folder"],
            content["cpus"],
            tuple(content["command"]),
            tuple(content["imports"]),
            content["accept_changes"],
            None if content["tracking"] is None else Tracking(**content["tracking"]),
        )


def progress(run: Run, folder: str | Path, *, accept_changes: bool = False) -> int:
    """Return how much of the run is saved in its folder: agent steps, or seeds of a tabular run.

    Raises an `InputError` if the run can neither be continued nor counts as finished.
    """
    folder = Path(folder)
    if run.unit == "seeds":
        return int(np.isin(run.seeds, seeds_done(folder)).sum())
    if not (folder / "config.json").exists():
        return 0
    run_folder = RunFolder.open(folder, accept_changes=accept_changes)
    steps = run_folder.checkpoints.steps()
    if steps:
        return steps[-1]
    # A run saves a checkpoint before its first record. Without one, somebody has deleted them.
    done = run_folder.last_step()
    if 0 < done < run.length:
        raise InputError(
            f"The checkpoints of {run.name} were deleted: it cannot continue from step {done:,} to "
            f"{run.length:,}. Delete its folder to train it again."
        )
    return done


def perform(task: Task, **where: Any) -> None:
    """Finish a run; `where` it is performed goes to its log of attempts.

    This needs its own process: the run's folder records the command in `sys.argv`, which is set here.
    """
    sys.argv = list(task.command)
    import_modules(task.imports)
    run, folder = task.run, Path(task.folder)
    with errors_in_one_line():
        if (folder / "config.json").exists():
            RunFolder.open(folder, accept_changes=task.accept_changes).wait_until_free(PATIENCE_SECONDS)
        done = progress(run, folder, accept_changes=task.accept_changes)
        if done >= run.length:
            return
        with Attempts(folder).attempt(done, where):
            if run.unit == "seeds":
                learn_tables(run, folder, task.cpus, accept_changes=task.accept_changes)
            else:
                _train(run, folder, task.tracking, accept_changes=task.accept_changes)


def _train(run: Run, folder: Path, tracking: Tracking | None, *, accept_changes: bool) -> None:
    from ebql.deep.agents import AGENTS  # imports torch, which studies of tables can do without

    agent_class = AGENTS[run.agent]
    if (folder / "config.json").exists():
        agent_class.resume(folder, steps=run.length, accept_changes=accept_changes, track=tracking)
    else:
        agent_class(run.environment, preset=run.preset, **run.options).learn(
            run.length, out=folder, label=run.label, track=tracking
        )
