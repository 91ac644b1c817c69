"""Read runs from their folders or from kept results, group them, and return metrics as arrays (seeds, steps).

A run may be unfinished, killed or still running: what it has not measured is NaN.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.deep.config.agents import CONFIGS
from ebql.errors import InputError
from ebql.estimators.intervals import over_seeds
from ebql.kept.files import WITHOUT_EFFECT, KeptRun, holds_kept, read_kept
from ebql.runs import RunFolder, has_step, is_timing, read_log
from ebql.runs.metric_names import (
    BIAS_METHOD,
    BIAS_SPREAD,
    EPSILON,
    EVALUATION_EPISODES,
    EVALUATION_LENGTH,
    EVALUATION_PREFIX,
    EVALUATION_RETURN,
    EVALUATION_RETURN_STD,
    RETURN,
)
from ebql.runs.metrics import changed_in_words
from ebql.runs.seals import ACCEPT
from ebql.studies.kinds import DEEP, complete_options, kind_of

Floats = NDArray[np.float64]

# Options that the name of an agent shows already, or that do not affect what is learnt.
NOT_IN_LABELS = frozenset({"seed", "ensemble_size"}) | WITHOUT_EFFECT
# Training episodes with at least this ε count as random play.
_RANDOM_EPSILON = 0.9


@dataclass(frozen=True)
class RecordedRun:
    """A run as its folder records it: what was run, and everything that it has measured so far."""

    path: Path
    config: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    timing: Sequence[Mapping[str, Any]] = ()
    """Records of step, seconds since the previous record, and peak_memory_bytes."""
    changes: Sequence[str] = ()
    """The names of files that were changed by hand after the run wrote them; the changes were accepted."""
    unsealed: bool = False
    """Whether changes would not be noticed, because version 0.1 wrote the run."""

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
    def label(self) -> str | None:
        """The label that the run's study gives its agent; None if it is only the agent's name."""
        label: str | None = self.config.get("label")  # missing in runs made by earlier versions
        return None if label == self.config["agent"] else label

    @property
    def name(self) -> str:
        """The label, or else the agent's name as people write it: DQN, DoubleDQN, EBQL K=5."""
        if self.label is not None:
            return self.label
        agent = self.config["agent"]
        name = CONFIGS[agent].label() if agent in CONFIGS else agent
        size = self.options.get("ensemble_size", 1)
        return f"{name} K={size}" if size > 1 else name

    @property
    def finished(self) -> bool:
        """Whether the run has reached its last step."""
        return bool(self.records) and self.records[-1]["step"] >= self.config["steps"]

    @property
    def evaluated(self) -> bool:
        """Whether the run has been evaluated at least once."""
        return any(EVALUATION_RETURN in record for record in self.records)

    @property
    def random_return(self) -> float | None:
        """The mean return of the first training episodes; None unless nearly all actions were random."""
        first = next((record for record in self.records if record.get(RETURN) is not None), None)
        if first is None or first.get(EPSILON, 0.0) < _RANDOM_EPSILON:
            return None
        return float(first[RETURN])


@dataclass(frozen=True)
class RunOfTable(RecordedRun):
    """A run of kept results: its evaluations, without the records of training and of time."""

    kept_random_return: float | None = None

    @property
    def finished(self) -> bool:
        """Always: only finished runs are kept."""
        return True

    @property
    def random_return(self) -> float | None:
        """The mean return of the first training episodes, as it was kept."""
        return self.kept_random_return


class LearningCurve(NamedTuple):
    """One metric of S seeds over T steps."""

    steps: NDArray[np.int64]
    """Agent steps, (T,)."""
    values: Floats
    """The metric of each seed, (S, T); NaN where it was not measured."""


class Band(NamedTuple):
    """The mean over seeds with its 95% interval at each of T steps; arrays (T,)."""

    steps: NDArray[np.int64]
    seeds: NDArray[np.int64]
    """The number of seeds that were averaged."""
    mean: Floats
    half_width: Floats
    """Infinite with fewer than `FEWEST_SEEDS` seeds."""


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in nothing but their seeds."""

    environment: str
    label: str
    runs: Sequence[RecordedRun]
    """Sorted by seed."""

    unit: ClassVar[str] = "agent steps"
    """What the steps of a learning curve count."""
    work_unit: ClassVar[str] = "agent steps"
    """What the steps of timing records count."""

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds, one for each row of a learning curve."""
        return [run.seed for run in self.runs]

    @property
    def tolerance(self) -> int:
        """How far apart the steps of the same evaluation may be in different runs."""
        # With several lanes, the total number of steps jumps over the exact multiple of the period.
        return int(self.runs[0].options.get("evaluation_period", 0)) // 20

    def curve(self, metric: str) -> LearningCurve:
        """Return a metric over steps; without any steps if no run has measured it."""
        measured = [[(r["step"], r[metric]) for r in run.records if metric in r] for run in self.runs]
        steps = _merged([{step for step, _ in points} for points in measured], self.tolerance)
        values = np.full((len(self.runs), len(steps)), np.nan)
        for row, points in zip(values, measured, strict=True):
            for step, value in points:
                row[np.searchsorted(steps, step, side="right") - 1] = np.nan if value is None else value
        return LearningCurve(steps, values)


def own_metrics(groups: Iterable[RunGroup]) -> list[str]:
    """Return the metrics of evaluations that are the users' own, in the order of their first appearance."""
    ours = {EVALUATION_RETURN, EVALUATION_RETURN_STD, EVALUATION_LENGTH, EVALUATION_EPISODES}
    names = (name for group in groups for run in group.runs for record in run.records for name in record)
    return [name for name in dict.fromkeys(names) if name.startswith(EVALUATION_PREFIX) and name not in ours]


def ensembles(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """Return the groups whose members differ: a single member has no spread."""
    return [group for group in groups if np.nan_to_num(group.curve(BIAS_SPREAD).values).any()]


def read_runs(paths: Iterable[str | Path], *, accept_changes: bool = False) -> list[RecordedRun]:
    """Read run folders and kept results; any other folder stands for all runs below it.

    A run whose files were changed by hand raises an error, unless changes are accepted or the run itself
    records that they were.
    """
    folders = dict.fromkeys(folder for path in paths for folder in _run_folders(Path(path)))
    return [
        run
        for folder in folders
        for run in (
            kept_runs(folder) if holds_kept(folder) else [_read(folder, accept_changes=accept_changes)]
        )
    ]


def kept_runs(folder: Path) -> list[RunOfTable]:
    """Return the runs of kept results."""
    return [_of_table(folder, run) for run in read_kept(folder)]


def _of_table(folder: Path, run: KeptRun) -> RunOfTable:
    place = folder / f"{run.environment.replace('/', '-')}_{run.agent}_{run.seed}"  # names it in messages
    recorded = RunOfTable(place, run.config, run.evaluations, kept_random_return=run.random_return)
    unlabelled = RunOfTable(place, run.config | {"label": None}, run.evaluations)
    # An agent whose study gave it no label has its usual name, which is no label to compare with others.
    return recorded if unlabelled.name != run.agent else replace(recorded, config=unlabelled.config)


def grouped(runs: Sequence[RecordedRun]) -> list[RunGroup]:
    """Group runs over seeds: environments in the order given, agents from DQN to the largest ensemble.

    If agents of the same name differ in their options, those options are added to their labels. Two runs
    with the same seed in a group are refused.
    """
    groups: dict[tuple[str, str], list[RecordedRun]] = {}
    for label, run in labelled(runs):
        groups.setdefault((run.environment, label), []).append(run)
    environments = list(dict.fromkeys(run.environment for run in runs))
    ordered = sorted(groups.items(), key=lambda item: environments.index(item[0][0]))
    return [_group(*key, members) for key, members in ordered]


def labelled(runs: Sequence[RecordedRun]) -> Iterator[tuple[str, RecordedRun]]:
    """Yield each run with its label: its name, and the options in which runs of this name differ."""
    for runs_of_name in _by_name(sorted(runs, key=_rank)).values():
        differing = _differing_options(runs_of_name)
        for run in runs_of_name:
            options = complete_options(run.config)
            yield ", ".join([run.name, *(f"{name}={options.get(name)}" for name in differing)]), run


def change_notes(runs: Sequence[RecordedRun]) -> list[str]:
    """Say which runs were changed by hand, and how many would not show it, one sentence each."""
    notes = [
        f"Changed by hand, and included as it is: {run.path.name} ({', '.join(run.changes)})."
        for run in runs
        if run.changes
    ]
    if unsealed := sum(run.unsealed for run in runs):
        notes.append(
            f"Written by version 0.1, without seals that show changes: {unsealed} of {len(runs)} runs."
        )
    return notes


def over_available_seeds(curve: LearningCurve) -> Band:
    """Return the mean and interval at each step, over the seeds that have reached it; at least one has."""
    seeds = np.count_nonzero(~np.isnan(curve.values), axis=0)
    reached = seeds > 0
    columns = [column[~np.isnan(column)] for column in curve.values.T[reached]]
    estimates = np.array([over_seeds(column) for column in columns]).reshape(-1, 2)
    return Band(curve.steps[reached], seeds[reached], estimates[:, 0], estimates[:, 1])


def _run_folders(path: Path) -> list[Path]:
    if (path / "config.json").exists() or holds_kept(path) or not path.is_dir():
        return [path]
    below = sorted(config.parent for config in path.rglob("config.json"))
    if not below:
        raise InputError(f"{str(path)!r} is not a run folder and contains none.")
    return below


def _read(path: Path, *, accept_changes: bool) -> RecordedRun:
    folder = RunFolder.open(path, accept_changes=accept_changes)
    _require_description(folder)
    changes = {*folder.accepted, *(["config.json"] if folder.changed else [])}
    metrics, timing = read_log(folder.metrics_path, _is_measured), read_log(folder.timing_path, is_timing)
    for file, log in ((folder.metrics_path, metrics), (folder.timing_path, timing)):
        if log.wrong:
            if not accept_changes and file.name not in changes:
                raise InputError(f"{changed_in_words(file, log.wrong)} {ACCEPT}")
            changes.add(file.name)
    unsealed = not (folder.sealed and metrics.sealed)
    return RecordedRun(path, folder.config, metrics.records, timing.records, sorted(changes), unsealed)


def _require_description(folder: RunFolder) -> None:
    is_deep = kind_of(folder.config) == DEEP
    needed = ["agent", "environment", "options", *(["steps"] if is_deep else [])]
    missing = [key for key in needed if key not in folder.config]
    if not missing and is_deep and not isinstance(folder.config["options"].get("seed"), int):
        missing = ["a seed"]
    if missing:
        raise InputError(f"{str(folder.path)!r} does not say what was run: it lacks {', '.join(missing)}.")


def _is_measured(record: dict[str, Any]) -> bool:
    return has_step(record) and all(starmap(_is_valid, record.items()))


def _is_valid(name: str, value: object) -> bool:
    return value is None or isinstance(value, str if name == BIAS_METHOD else int | float)


def _rank(run: RecordedRun) -> tuple[int, int]:
    known = list(CONFIGS)
    agent = run.config["agent"]
    place = known.index(agent) if agent in known else len(known)
    return place, run.options.get("ensemble_size", 1)


def _by_name(runs: Iterable[RecordedRun]) -> dict[tuple[str, str], list[RecordedRun]]:
    named: dict[tuple[str, str], list[RecordedRun]] = {}
    for run in runs:
        named.setdefault((run.environment, run.name), []).append(run)
    return named


def _differing_options(runs: Sequence[RecordedRun]) -> list[str]:
    options = [complete_options(run.config) for run in runs]
    names = {name: None for own in options for name in own if name not in NOT_IN_LABELS}
    return [name for name in names if any(own.get(name) != options[0].get(name) for own in options)]


def _group(environment: str, label: str, runs: list[RecordedRun]) -> RunGroup:
    ordered = sorted(runs, key=lambda run: run.seed)
    for one, other in pairwise(ordered):
        if one.seed == other.seed:
            raise same_seed(environment, label, one.seed, one, other)
    return RunGroup(environment, label, ordered)


def same_seed(environment: str, label: str, seed: int, one: RecordedRun, other: RecordedRun) -> InputError:
    """Return the error that two runs of an agent have the same seed."""
    return InputError(
        f"Two runs of {label} on {environment} have the seed {seed}: "
        f"{str(one.path)!r} and {str(other.path)!r}."
    )


def _merged(steps: Sequence[set[int]], tolerance: int) -> NDArray[np.int64]:
    """Return the distinct steps of runs in order, without those that follow a kept one within `tolerance`.

    Two steps of one run are never merged: they are two evaluations.
    """
    kept: list[int] = []
    merged: set[int] = set()
    for step in sorted(set().union(*steps)):
        runs = {number for number, own in enumerate(steps) if step in own}
        if not kept or step > kept[-1] + tolerance or runs & merged:
            kept.append(step)
            merged = set()
        merged |= runs
    return np.array(kept, np.int64)
