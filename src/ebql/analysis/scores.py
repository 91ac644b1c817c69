"""A study's runs as scores: what each run is worth, at which step, on which scale.

An environment is scored at its horizon: the last step that at least one run of every agent there has been
evaluated at. A run's score is the mean return of its evaluations in the last tenth of the steps up to the
horizon; runs that have not come so far are not scored.

Agents are compared over the environments in which each of them has finished a run; while there are none, over
those in which each has been evaluated. If no environment has all agents, those are compared that are in all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.analysis.human_scores import game_of
from ebql.analysis.references import Reference, reference
from ebql.analysis.runs import (
    BIAS,
    NORMALISED_BIAS,
    RETURN,
    Course,
    DeepRun,
    RunGroup,
    grouped,
    read_runs,
)
from ebql.analysis.statistics import Floats, Scores
from ebql.analysis.tables import TableGroup, is_of_tables, table_groups
from ebql.errors import InputError

LAST_SHARE = 0.1


class ScoredRun(NamedTuple):
    """What one run is worth at its environment's horizon."""

    environment: str
    agent: str
    seed: int
    step: int
    """The last agent step that counts."""
    evaluations: int
    """How many evaluations the score is the mean of."""
    score: float
    """The mean undiscounted return, in the environment's points."""
    normalised: float
    """The score on the environment's scale; NaN where it has none."""
    bias: float
    """The mean of Q̂ − discounted return over the same evaluations; NaN where it was not measured."""
    relative_bias: float
    """The bias over the mean absolute discounted return; NaN where it was not measured."""


class Costs(NamedTuple):
    """What runs of one agent in one environment cost, each a median over runs; NaN where unknown."""

    speed: float
    """Agent steps (of tables: seeds) a second while learning, evaluations apart."""
    peak_memory: float
    """Bytes."""


@dataclass(frozen=True)
class ScoredStudy:
    """Many runs, read and scored."""

    groups: Sequence[RunGroup]
    """The evaluated runs, by environment and agent."""
    waiting: Sequence[DeepRun]
    """Runs that have not been evaluated yet."""
    horizons: Mapping[str, int]
    """The agent step, or the episode of tables, at which each environment is scored."""
    references: Mapping[str, Reference | None]
    scored: Sequence[ScoredRun]
    compared: Sequence[str]
    """The environments over which agents are compared; none if agents have too little in common."""
    contenders: Sequence[str]
    """The agents that are compared there."""

    @property
    def environments(self) -> list[str]:
        """All environments, in the order they came."""
        return list(dict.fromkeys(group.environment for group in self.groups))

    @property
    def agents(self) -> list[str]:
        """All agents, from DQN to the largest ensemble."""
        return list(dict.fromkeys(group.label for group in self.groups))

    @property
    def has_tables(self) -> bool:
        """Whether runs are of tables."""
        return any(isinstance(group, TableGroup) for group in self.groups)

    @property
    def unit(self) -> str:
        """What horizons count: agent steps, or episodes of tables."""
        return " or ".join(dict.fromkeys(group.unit for group in self.groups))

    @property
    def work_unit(self) -> str:
        """What speeds count: agent steps, or seeds of tables."""
        return " or ".join(dict.fromkeys(group.work_unit for group in self.groups))

    @property
    def runs(self) -> list[DeepRun]:
        """All evaluated runs."""
        return [run for group in self.groups for run in group.runs]

    @property
    def unfinished(self) -> int:
        """How many of the evaluated runs have not come to their last step."""
        return sum(not run.finished for run in self.runs)

    def scored_runs(self, environment: str, agent: str | None = None) -> list[ScoredRun]:
        """Return the scored runs in an environment, of one agent or of all."""
        return [run for run in self.scored if run.environment == environment and agent in (None, run.agent)]

    def scores(self, agent: str) -> Scores:
        """Return an agent's normalised scores over the environments compared, an array (seeds,) each."""
        return [
            np.array([run.normalised for run in self.scored_runs(environment, agent)])
            for environment in self.compared
        ]

    def scores_by_seed(self, agent: str) -> list[dict[int, float]]:
        """Return an agent's normalised scores over the environments compared, by seed."""
        return [
            {run.seed: run.normalised for run in self.scored_runs(environment, agent)}
            for environment in self.compared
        ]

    def relative_biases(self, agent: str) -> Scores:
        """Return an agent's relative biases over the environments compared in which they were measured."""
        found = [self._measured_biases(environment, agent) for environment in self.compared]
        return [own for own in found if len(own)]

    def seeds(self, environments: Sequence[str] | None = None) -> tuple[int, int]:
        """Return the fewest and the most scored seeds of an agent in an environment."""
        chosen = self.environments if environments is None else environments
        counts = [
            len(self.scored_runs(group.environment, group.label))
            for group in self.groups
            if group.environment in chosen
        ]
        return min(counts), max(counts)

    def costs(self, agent: str) -> Costs:
        """Return what an agent's runs cost, over all environments."""
        runs = [run for group in self.groups if group.label == agent for run in group.runs]
        return Costs(_median(map(_speed, runs)), _median(map(_peak_memory, runs)))

    def _measured_biases(self, environment: str, agent: str) -> Floats:
        biases = [run.relative_bias for run in self.scored_runs(environment, agent)]
        return np.array([bias for bias in biases if np.isfinite(bias)])


def read_scores(folder: str | Path) -> ScoredStudy:
    """Read the runs anywhere below a folder, and score them; a folder without an evaluated run is refused."""
    runs = read_runs([folder])
    tables = table_groups([run for run in runs if is_of_tables(run)])
    groups = [*grouped([run for run in runs if run.evaluated]), *tables]
    if not groups:
        raise InputError(f"None of the {len(runs)} runs in {str(folder)!r} has been evaluated yet.")
    known = {run.path for group in groups for run in group.runs}
    return score(groups, [run for run in runs if run.path not in known])


def score(groups: Sequence[RunGroup], waiting: Sequence[DeepRun] = ()) -> ScoredStudy:
    """Score runs at the horizons of their environments."""
    by_environment: dict[str, list[RunGroup]] = {}
    for group in groups:
        by_environment.setdefault(group.environment, []).append(group)
    # Human players are no scale for some games while others have none: scores are put together.
    by_human = all(game_of(name) is not None for name in by_environment)
    horizons = {name: _horizon(own) for name, own in by_environment.items()}
    references: dict[str, Reference | None] = {}
    scored: list[ScoredRun] = []
    for name, own in by_environment.items():
        rough = [run for group in own for run in _scored(group, horizons[name])]
        of_agents: dict[str, list[float]] = {}
        for run in rough:
            of_agents.setdefault(run.agent, []).append(run.score)
        by_environment[name] = [group for group in own if group.label in of_agents]
        scale = references[name] = _reference(name, own, of_agents, by_human=by_human)
        scored += [run._replace(normalised=scale.normalised(run.score)) if scale else run for run in rough]
    agents = list(dict.fromkeys(group.label for group in groups))
    scaled = {name: own for name, own in by_environment.items() if references[name]}
    compared, contenders = _comparable(scaled, agents)
    return ScoredStudy(groups, waiting, horizons, references, scored, compared, contenders)


def _reference(
    environment: str, groups: Sequence[RunGroup], scores: Mapping[str, Sequence[float]], *, by_human: bool
) -> Reference | None:
    if isinstance(groups[0], TableGroup):
        return groups[0].reference()
    if not scores:
        return None
    runs = [run for group in groups for run in group.runs]
    return reference(environment, runs, scores, by_human=by_human)


def _comparable(
    by_environment: Mapping[str, Sequence[RunGroup]], agents: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the environments and agents of a fair comparison: each agent has runs in each environment."""
    present = {name: {group.label for group in own} for name, own in by_environment.items()}
    full = [name for name, own in present.items() if len(own) == len(agents)]
    settled = [name for name in full if all(_has_finished(group) for group in by_environment[name])]
    if full:
        return settled or full, list(agents)
    in_all = [agent for agent in agents if all(agent in own for own in present.values())]
    return (list(present), in_all) if present and len(in_all) > 1 else ([], [])


def _has_finished(group: RunGroup) -> bool:
    return any(run.finished for run in group.runs)


def _horizon(groups: Sequence[RunGroup]) -> int:
    return min(int(group.course(RETURN).steps[-1]) for group in groups)


def _scored(group: RunGroup, horizon: int) -> Iterator[ScoredRun]:
    course = group.course(RETURN)
    biases = [group.course(metric) for metric in (BIAS, NORMALISED_BIAS)]
    latest = horizon + group.tolerance
    for row, seed in enumerate(group.seeds):
        evaluated = course.steps[np.isfinite(course.values[row])]
        if not evaluated.size or evaluated[-1] < horizon - group.tolerance:
            continue
        before = evaluated[evaluated <= latest]
        if not before.size:  # evaluated more rarely than others, and not so far yet
            continue
        # At least the last one, in agents that are evaluated more rarely than others.
        counted = before[(before > (1 - LAST_SHARE) * horizon) | (before == before[-1])]
        yield ScoredRun(
            group.environment,
            group.label,
            seed,
            int(counted[-1]),
            len(counted),
            _mean_at(course, row, counted),
            np.nan,
            *(_mean_at(bias, row, counted) for bias in biases),
        )


def _mean_at(course: Course, row: int, steps: NDArray[np.int64]) -> float:
    """Return the mean of what one seed measured at these steps; NaN if it measured nothing."""
    values = course.values[row, np.isin(course.steps, steps)]
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


def _median(values: Iterator[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.median(known)) if known else np.nan


def _speed(run: DeepRun) -> float:
    """Return the agent steps a second of a run once it learned, evaluations apart."""
    starts = run.options.get("learning_starts", 0)
    steps, seconds, before = 0, 0.0, 0
    for record in run.timing:
        # A resumed run falls back to its checkpoint: what it gains from there on counts again.
        gained, before = record["step"] - before, record["step"]
        if gained > 0 and record["step"] - gained >= starts:
            steps, seconds = steps + gained, seconds + record["seconds"]
    return steps / seconds if seconds > 0 else np.nan


def _peak_memory(run: DeepRun) -> float:
    return max((record.get("peak_memory_bytes", np.nan) for record in run.timing), default=np.nan)
