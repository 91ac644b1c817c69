"""One run of a study, performed from wherever its folder stands to its end: what every runner calls."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ebql.runs import Attempts, RunFolder
from ebql.studies.definition import Run

# How long to wait for one who still holds the run: a dying worker that writes its last checkpoint, or the
# lease of a machine that is gone (90 s on an NFS server as it comes).
PATIENCE_SECONDS = 180.0


@dataclass(frozen=True)
class Task:
    """A run to perform."""

    run: Run
    folder: str
    cpus: int
    command: tuple[str, ...]
    """The command that started the study, kept with the run."""

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON-able values."""
        return {**vars(self), "run": self.run.to_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Task":
        """Rebuild a task from `to_json` gone through JSON."""
        return cls(
            Run.from_json(content["run"]), content["folder"], content["cpus"], tuple(content["command"])
        )


def progress(run: Run, folder: str | Path) -> int:
    """Return how much of the run its folder keeps safe: agent steps, or seeds."""
    folder = Path(folder)
    if run.unit == "seeds":
        from ebql.studies.tables.runs import seeds_done

        return int(np.isin(run.seeds, seeds_done(folder)).sum())
    if not (folder / "config.json").exists():
        return 0
    found = RunFolder.open(folder)
    steps = found.checkpoints.steps()
    if steps:
        return steps[-1]
    # A run has a checkpoint before its first record: here somebody has cleared them away.
    return found.last_step()


def perform(task: Task, **where: Any) -> None:
    """Bring a run to its end; `where` it happens goes to the log of attempts.

    Needs a process of its own: what a run's folder keeps of the command is the process's.
    """
    sys.argv = list(task.command)
    run, folder = task.run, Path(task.folder)
    if (folder / "config.json").exists():
        RunFolder.open(folder).wait_until_free(PATIENCE_SECONDS)
    done = progress(run, folder)
    if done >= run.length:
        return
    with Attempts(folder).attempt(done, where):
        if run.unit == "seeds":
            from ebql.studies.tables.runs import learn_tables

            learn_tables(run, folder, task.cpus)
        else:
            _train(run, folder)


def _train(run: Run, folder: Path) -> None:
    from ebql.deep.agents import AGENTS

    kind = AGENTS[run.agent]
    if (folder / "config.json").exists():
        kind.resume(folder, steps=run.length)
    else:
        kind(run.environment, preset=run.preset, **run.options).learn(run.length, out=folder)
