"""Compare a study with its folder and with kept results: which runs are finished, and which are left."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ebql.errors import InputError, UserError
from ebql.kept.files import WITHOUT_EFFECT, holds_kept, read_kept
from ebql.runs import RunFolder, one_line
from ebql.studies.kinds import TABULAR, complete_options, kind_of
from ebql.studies.model import STUDY_FILE, Run, Study
from ebql.studies.tasks import progress


class Planned(NamedTuple):
    """A run, and how much of it is done."""

    run: Run
    folder: Path
    done: int
    """Agent steps (tabular runs: seeds) that are saved in the folder."""
    obstacle: str | None = None
    """Why the run cannot be continued, in one line; None if it can."""

    @property
    def finished(self) -> bool:
        """Whether the run is complete."""
        return self.obstacle is None and self.done >= self.run.length

    @property
    def left(self) -> int:
        """Agent steps (tabular runs: seeds) still to do."""
        return max(0, self.run.length - self.done)


def run_folder(out: str | Path, run: Run) -> Path:
    """Return the folder of a study's run."""
    return Path(out) / "runs" / run.name


def without_kept(study: Study, kept: str | Path) -> Study:
    """Return the study without the runs that the kept results in this folder have.

    They have the same environment, agent, seed and options (except those without an effect on what is
    learnt), and are as long or longer. Labels do not count. A folder with only a study file has no runs yet.
    """
    if study.kind == TABULAR:
        raise InputError("--kept is for deep agents: runs of tabular agents are not kept.")
    is_planned = (Path(kept) / STUDY_FILE).is_file() and not holds_kept(kept)
    lengths: dict[str, int] = {}
    for run in [] if is_planned else read_kept(kept):
        identity = _identity(_description(run.config))
        lengths[identity] = max(run.steps, lengths.get(identity, 0))

    def is_kept(run: Run) -> bool:
        about = {"kind": run.kind, "agent": run.agent, "environment": run.environment, **run.options}
        return lengths.get(_identity(about), 0) >= run.length

    return replace(study, runs=tuple(run for run in study.runs if not is_kept(run)))


def _identity(description: Mapping[str, Any]) -> str:
    """Return what makes two runs the same, as text to compare."""
    return json.dumps({k: v for k, v in description.items() if k not in WITHOUT_EFFECT}, sort_keys=True)


def plan(study: Study, out: str | Path, *, accept_changes: bool = False) -> list[Planned]:
    """Compare a study with the folder `out`; refuse a study that contradicts an existing run.

    A run whose files are damaged, or were changed without that being accepted, has an obstacle; the others
    are planned all the same.
    """
    planned, changes = [], []
    for run in study.runs:
        folder = run_folder(out, run)
        try:
            changes += _changes(run, folder, accept_changes=accept_changes)
            planned.append(Planned(run, folder, progress(run, folder, accept_changes=accept_changes)))
        except (UserError, OSError) as error:
            planned.append(Planned(run, folder, 0, one_line(error)))
    if changes:
        more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
        raise InputError(
            f"The study changes an existing run: {changes[0]}{more}. Undo the change, "
            "give the agent another label, or choose another folder."
        )
    return planned


def _changes(run: Run, folder: Path, *, accept_changes: bool) -> list[str]:
    """Return, in words, how the run in `folder` differs from the study's."""
    if not (folder / "config.json").exists():
        return []
    existing = _description(RunFolder.open(folder, accept_changes=accept_changes).config)
    wanted = {"kind": run.kind, "agent": run.agent, "environment": run.environment, **run.options}
    return [
        f"{run.name} has {name} {existing.get(name)!r}, the study {wanted.get(name)!r}"
        for name in {**wanted, **existing}
        if existing.get(name) != wanted.get(name)
    ]


def _description(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a `config.json` says about its run, in the terms of a study."""
    if missing := [key for key in ("agent", "environment", "options") if key not in config]:
        raise InputError(f"Its config.json lacks {', '.join(missing)}.")
    about = {"kind": kind_of(config), "agent": config["agent"], "environment": config["environment"]}
    return {**about, **complete_options(config)}
