"""Runs of deep agents, read from their folders into plain arrays: one row a seed, one column a step.

A run may be unfinished, killed or still growing: what it has not measured is NaN.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.analysis.statistics import over_seeds
from ebql.deep.config.agents import CONFIGS
from ebql.errors import InputError
from ebql.runs import RunFolder, read_metrics
from ebql.studies.definition import read_study
from ebql.studies.kinds import DEEP, complete_options, kind_of
from ebql.studies.model import STUDY_FILE

Floats = NDArray[np.float64]

RETURN, BIAS, NORMALISED_BIAS = "evaluation/return", "bias/mean", "bias/normalised"
BIAS_METHOD = "bias/method"

# Options that a label tells already, or that say how a run was computed and not what.
NOT_IN_LABELS = frozenset({"seed", "ensemble_size", "device", "threads", "log_period", "checkpoint_period"})


@dataclass(frozen=True)
class DeepRun:
    """One run: what was run, and all that it has measured so far."""

    path: Path
    config: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    timing: Sequence[Mapping[str, Any]] = ()
    """What the clock and the machine said: step, seconds since the record before, peak_memory_bytes."""
    label: str | None = None
    """What the study that the run belongs to calls the agent, if it gives it a name of its own."""

    @property
    def environment(self) -> str:
        """The environment's id."""
        return self.config["environment"] or "an environment of its own"

    @property
    def options(self) -> Mapping[str, Any]:
        """The agent's options."""
        options: Mapping[str, Any] = self.config["options"]
        return options

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.options["seed"])

    @property
    def name(self) -> str:
        """The agent as its study calls it, or else as a person would: DQN, DoubleDQN, EBQL K=5."""
        if self.label is not None:
            return self.label
        agent = self.config["agent"]
        name = CONFIGS[agent].label() if agent in CONFIGS else agent
        size = self.options.get("ensemble_size", 1)
        return f"{name} K={size}" if size > 1 else name

    @property
    def finished(self) -> bool:
        """Whether the run has come to its last step."""
        return bool(self.records) and self.records[-1]["step"] >= self.config["steps"]

    @property
    def evaluated(self) -> bool:
        """Whether the run has been evaluated at least once."""
        return any(RETURN in record for record in self.records)


class Course(NamedTuple):
    """One metric over steps: T steps, S seeds."""

    steps: NDArray[np.int64]
    """Agent steps, (T,)."""
    values: Floats
    """What each seed measured, (S, T); NaN where it has not, or could not."""


class Band(NamedTuple):
    """A mean over seeds and its 95% interval at each of T steps, each (T,)."""

    steps: NDArray[np.int64]
    seeds: NDArray[np.int64]
    """How many seeds the mean is of."""
    mean: Floats
    half_width: Floats
    """Infinite with a single seed."""


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in their seeds only."""

    environment: str
    label: str
    runs: Sequence[DeepRun]
    """In the order of their seeds."""

    unit: ClassVar[str] = "agent steps"
    """What a course counts."""
    work_unit: ClassVar[str] = "agent steps"
    """What a run's timing counts."""

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds, one for each row of a course."""
        return [run.seed for run in self.runs]

    @property
    def tolerance(self) -> int:
        """How far apart the steps of one and the same evaluation may lie."""
        # Lanes that share their steps cross a multiple of the period a little sooner or later.
        return int(self.runs[0].options.get("evaluation_period", 0)) // 20

    def course(self, metric: str) -> Course:
        """Return a metric over steps, a row for each seed; empty if no run has measured it."""
        measured = [[(r["step"], r[metric]) for r in run.records if metric in r] for run in self.runs]
        steps = _merged([step for own in measured for step, _ in own], self.tolerance)
        values = np.full((len(self.runs), len(steps)), np.nan)
        for row, own in zip(values, measured, strict=True):
            for step, value in own:
                row[np.searchsorted(steps, step, side="right") - 1] = np.nan if value is None else value
        return Course(steps, values)


def read_runs(paths: Iterable[str | Path]) -> list[DeepRun]:
    """Read run folders; a folder that isn't one stands for the runs anywhere below it."""
    folders = dict.fromkeys(found for path in paths for found in _found(Path(path)))
    studies = dict.fromkeys(_study_of(folder) for folder in folders)
    labels = {study: _labels(study) for study in studies if study.is_file()}
    return [
        _read(folder, labels.get(_study_of(folder), {}).get(_without_seed(folder.name))) for folder in folders
    ]


def grouped(runs: Sequence[DeepRun]) -> list[RunGroup]:
    """Group runs over seeds: environments as they came, agents from DQN to the largest ensemble.

    Agents of one name whose options differ are told apart by those options; two runs that have even
    their seed in common are refused.
    """
    groups: dict[tuple[str, str], list[DeepRun]] = {}
    for runs_of_name in _by_name(sorted(runs, key=_rank)).values():
        differing = _differing_options(runs_of_name)
        for run in runs_of_name:
            own = complete_options(run.config)
            label = ", ".join([run.name, *(f"{name}={own.get(name)}" for name in differing)])
            groups.setdefault((run.environment, label), []).append(run)
    environments = list(dict.fromkeys(run.environment for run in runs))
    ordered = sorted(groups.items(), key=lambda item: environments.index(item[0][0]))
    return [_group(*key, members) for key, members in ordered]


def over_available_seeds(course: Course) -> Band:
    """Return the mean and interval at each step that some seed has reached, over the seeds that have."""
    seeds = np.count_nonzero(~np.isnan(course.values), axis=0)
    reached = seeds > 0
    columns = [column[~np.isnan(column)] for column in course.values.T[reached]]
    estimates = np.array([over_seeds(column) for column in columns]).reshape(-1, 2)
    return Band(course.steps[reached], seeds[reached], estimates[:, 0], estimates[:, 1])


def _found(path: Path) -> list[Path]:
    if (path / "config.json").exists() or not path.is_dir():
        return [path]
    below = sorted(config.parent for config in path.rglob("config.json"))
    if not below:
        raise InputError(f"{str(path)!r} is not a run folder, and holds none.")
    return below


def _study_of(path: Path) -> Path:
    """Return where the study's file lies, if the run in this folder belongs to one."""
    return path.parent.parent / STUDY_FILE


def _labels(study: Path) -> dict[str, str]:
    """Return the labels of a study's runs that are not just the agent's name, by the runs' names.

    Seeds that the study asks for no longer keep their label, so that an agent is never compared with itself.
    """
    try:
        runs = read_study(study, to_run=False).runs
    except InputError:  # of another version, or edited since: the runs are there all the same
        return {}
    return {_without_seed(run.name): run.label for run in runs if run.label != run.agent}


def _without_seed(name: str) -> str:
    """Return what the runs of an agent in an environment have in common in their names."""
    return name.rpartition("_")[0]


def _read(path: Path, label: str | None) -> DeepRun:
    folder = RunFolder.open(path)
    _require_description(folder)
    records, timing = (
        read_metrics(log) if log.exists() else [] for log in (folder.metrics_path, folder.timing_path)
    )
    for record in (*records, *timing):
        if not isinstance(record.get("step"), int) or not all(starmap(_is_measured, record.items())):
            raise InputError(f"The measurements of {str(path)!r} are damaged: {str(record)[:60]}.")
    return DeepRun(path, folder.config, records, timing, label)


def _require_description(folder: RunFolder) -> None:
    is_deep = kind_of(folder.config) == DEEP
    needed = ["agent", "environment", "options", *(["steps"] if is_deep else [])]
    missing = [key for key in needed if key not in folder.config]
    if not missing and is_deep and not isinstance(folder.config["options"].get("seed"), int):
        missing = ["a seed"]
    if missing:
        raise InputError(f"{str(folder.path)!r} does not say what was run: it lacks {', '.join(missing)}.")


def _is_measured(name: str, value: object) -> bool:
    return value is None or isinstance(value, str if name == BIAS_METHOD else int | float)


def _rank(run: DeepRun) -> tuple[int, int]:
    known = list(CONFIGS)
    agent = run.config["agent"]
    place = known.index(agent) if agent in known else len(known)
    return place, run.options.get("ensemble_size", 1)


def _by_name(runs: Iterable[DeepRun]) -> dict[tuple[str, str], list[DeepRun]]:
    named: dict[tuple[str, str], list[DeepRun]] = {}
    for run in runs:
        named.setdefault((run.environment, run.name), []).append(run)
    return named


def _differing_options(runs: Sequence[DeepRun]) -> list[str]:
    if runs[0].label is not None and len({_study_of(run.path) for run in runs}) == 1:
        return []  # the label is that study's word for exactly these options
    options = [complete_options(run.config) for run in runs]
    names = {name: None for own in options for name in own if name not in NOT_IN_LABELS}
    return [name for name in names if any(own.get(name) != options[0].get(name) for own in options)]


def _group(environment: str, label: str, runs: list[DeepRun]) -> RunGroup:
    ordered = sorted(runs, key=lambda run: run.seed)
    for one, other in pairwise(ordered):
        if one.seed == other.seed:
            raise InputError(
                f"Two runs of {label} on {environment} have the seed {one.seed}: "
                f"{str(one.path)!r} and {str(other.path)!r}."
            )
    return RunGroup(environment, label, ordered)


def _merged(steps: Sequence[int], tolerance: int) -> NDArray[np.int64]:
    """Return the distinct steps in order; of those within `tolerance` of an earlier one, only the earlier."""
    kept: list[int] = []
    for step in sorted(set(steps)):
        if not kept or step > kept[-1] + tolerance:
            kept.append(step)
    return np.array(kept, np.int64)
