"""Score the runs of a study, on a scale that environments share.

Each environment has a horizon: the last step at which every agent there has at least one evaluated run. The
score of a run is the mean return of its evaluations in the last tenth of the steps up to the horizon. Runs
that have not reached the horizon are not scored.

Agents are compared over the environments in which every agent has finished a run. If there are none, over
those in which every agent has been evaluated. If no environment has all agents, only agents that are in every
environment are compared.

Biases are compared in clipped rewards if every run clips its rewards alike, as on Atari, and otherwise
relative to the return. A policy that earns next to nothing has no meaningful bias relative to its return.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.analysis.human_scores import game_of
from ebql.analysis.references import Reference, reference
from ebql.analysis.runs import LearningCurve, RecordedRun, RunGroup, grouped, read_runs
from ebql.analysis.statistics import Floats, Scores
from ebql.analysis.tables import TableGroup, is_of_tables, table_groups
from ebql.errors import InputError
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.runs.metric_names import BIAS_MEAN, BIAS_NORMALISED, EVALUATION_RETURN

LAST_SHARE = 0.1
"""The share of the steps up to the horizon whose evaluations count."""

_UNIT_OF_VALUES = ("reward_clip", "reward_scale", "discount")  # runs that share them learn comparable values


class ScoredRun(NamedTuple):
    """The score and bias of one run at the horizon of its environment."""

    environment: str
    agent: str
    seed: int
    step: int
    """The last agent step that counts."""
    evaluations: int
    """The number of evaluations that were averaged."""
    score: float
    """The mean undiscounted return, in the environment's points."""
    normalised: float
    """The score on the environment's scale; NaN where it has none."""
    bias: float
    """The mean of Q̂ − discounted return over the same evaluations; NaN where it was not measured."""
    relative_bias: float
    """The bias over the mean absolute discounted return; NaN where it was not measured."""
    last_score: float
    """The mean undiscounted return of the last evaluation that counts."""
    bias_before: float
    """The bias at the evaluation before that one; NaN where it was not measured.

    It comes from other episodes than `last_score`, so that the two can be correlated.
    """
    throughout: float
    """The mean undiscounted return of all evaluations up to the horizon: higher if a run learns faster."""
    normalised_throughout: float = np.nan
    """The same on the environment's scale; NaN where it has none."""

    def on(self, scale: Reference) -> "ScoredRun":
        """Return the run with its scores on a scale, too."""
        return self._replace(
            normalised=scale.normalised(self.score),
            normalised_throughout=scale.normalised(self.throughout),
        )


class BiasScale(NamedTuple):
    """A scale of biases that the environments of a study share."""

    field: str
    """The field of `ScoredRun` that is on this scale."""
    name: str
    """What tables call it."""
    axis: str
    """What pictures call it."""
    unit: str
    """Its unit, in words that follow a number."""


RELATIVE = BiasScale("relative_bias", "relative bias", "bias relative to the return", "of its return")
IN_CLIPPED_REWARDS = BiasScale(
    "bias", "bias in clipped rewards", "bias in clipped rewards", "clipped rewards"
)


class Costs(NamedTuple):
    """The costs of an agent's runs, as medians over runs; NaN where unknown."""

    speed: float
    """Agent steps (tabular runs: seeds) per second while learning, without evaluations."""
    peak_memory: float
    """Bytes."""


@dataclass(frozen=True)
class ScoredStudy:
    """The runs of a study and their scores."""

    groups: Sequence[RunGroup]
    """The evaluated runs, grouped by environment and agent."""
    waiting: Sequence[RecordedRun]
    """Runs that have not been evaluated yet."""
    horizons: Mapping[str, int]
    """The agent step (tabular runs: episode) at which each environment is scored."""
    references: Mapping[str, Reference | None]
    scored: Sequence[ScoredRun]
    compared: Sequence[str]
    """The environments over which agents are compared; empty if agents share too few."""
    contenders: Sequence[str]
    """The agents that are compared."""

    @property
    def environments(self) -> list[str]:
        """All environments, in the order given."""
        return list(dict.fromkeys(group.environment for group in self.groups))

    @property
    def agents(self) -> list[str]:
        """All agents, from DQN to the largest ensemble."""
        return list(dict.fromkeys(group.label for group in self.groups))

    @property
    def has_tables(self) -> bool:
        """Whether the study has tabular runs."""
        return any(isinstance(group, TableGroup) for group in self.groups)

    @property
    def unit(self) -> str:
        """What horizons count: agent steps, or episodes of tabular runs."""
        return " or ".join(dict.fromkeys(group.unit for group in self.groups))

    @property
    def work_unit(self) -> str:
        """What speeds count: agent steps, or seeds of tabular runs."""
        return " or ".join(dict.fromkeys(group.work_unit for group in self.groups))

    @property
    def runs(self) -> list[RecordedRun]:
        """All evaluated runs."""
        return [run for group in self.groups for run in group.runs]

    @property
    def unfinished(self) -> int:
        """The number of evaluated runs that have not reached their last step."""
        return sum(not run.finished for run in self.runs)

    def scored_runs(self, environment: str, agent: str | None = None) -> list[ScoredRun]:
        """Return the scored runs in an environment, of one agent or of all agents."""
        return [run for run in self.scored if run.environment == environment and agent in (None, run.agent)]

    def scores(self, agent: str) -> Scores:
        """Return an agent's normalised scores, an array (seeds,) for each environment compared."""
        return [
            np.array([run.normalised for run in self.scored_runs(environment, agent)])
            for environment in self.compared
        ]

    @cached_property
    def bias_scale(self) -> BiasScale:
        """What biases are compared in."""
        if self.has_tables:
            return RELATIVE
        learnt = {tuple(run.options.get(name) for name in _UNIT_OF_VALUES) for run in self.runs}
        clip = next(iter(learnt))[0]
        return IN_CLIPPED_REWARDS if len(learnt) == 1 and clip is not None else RELATIVE

    def comparable_biases(self, agent: str) -> Scores:
        """Return an agent's biases on the `bias_scale`, for each environment compared that measured them."""
        biases = [self._measured_biases(environment, agent) for environment in self.compared]
        return [in_environment for in_environment in biases if len(in_environment)]

    def seeds(self, environments: Sequence[str] | None = None) -> tuple[int, int]:
        """Return the smallest and the largest number of scored seeds of an agent in an environment."""
        chosen = self.environments if environments is None else environments
        counts = [
            len(self.scored_runs(group.environment, group.label))
            for group in self.groups
            if group.environment in chosen
        ]
        return min(counts), max(counts)

    @property
    def compared_seeds(self) -> tuple[int, int]:
        """The smallest and the largest number of scored seeds of an agent in an environment.

        Only agents and environments that are compared count; if nothing is compared, all of them do.
        """
        counts = Counter(
            (run.environment, run.agent)
            for run in self.scored
            if not self.compared or (run.environment in self.compared and run.agent in self.contenders)
        ).values()
        return min(counts, default=0), max(counts, default=0)

    @property
    def has_few_seeds(self) -> bool:
        """Whether a compared agent has too few seeds for intervals and probabilities."""
        return self.compared_seeds[0] < FEWEST_SEEDS

    def costs(self, agent: str) -> Costs:
        """Return the costs of an agent's runs in all environments."""
        runs = [run for group in self.groups if group.label == agent for run in group.runs]
        return Costs(_median(map(_speed, runs)), _median(map(_peak_memory, runs)))

    def _measured_biases(self, environment: str, agent: str) -> Floats:
        biases = [getattr(run, self.bias_scale.field) for run in self.scored_runs(environment, agent)]
        return np.array([bias for bias in biases if np.isfinite(bias)])


def read_scores(folder: str | Path, *, accept_changes: bool = False) -> ScoredStudy:
    """Read and score all runs below a folder; a folder without an evaluated run is refused.

    So are runs that were changed by hand, unless changes are accepted.
    """
    runs = read_runs([folder], accept_changes=accept_changes)
    tables = table_groups([run for run in runs if is_of_tables(run)], accept_changes=accept_changes)
    groups = [*grouped([run for run in runs if run.evaluated]), *tables]
    if not groups:
        raise InputError(f"None of the {len(runs)} runs in {str(folder)!r} has been evaluated yet.")
    evaluated = {run.path for group in groups for run in group.runs}
    return score(groups, [run for run in runs if run.path not in evaluated])


def score(
    groups: Sequence[RunGroup],
    waiting: Sequence[RecordedRun] = (),
    scales: Mapping[str, Reference | None] | None = None,
) -> ScoredStudy:
    """Score runs at the horizons of their environments.

    Scores are normalised by `scales`, the `references` of another study, or else by the runs themselves. An
    environment without a scale is not compared.
    """
    by_environment: dict[str, list[RunGroup]] = {}
    for group in groups:
        by_environment.setdefault(group.environment, []).append(group)
    # Scores are aggregated over environments, so either all of them have a human player or none is used.
    by_human = all(game_of(name) is not None for name in by_environment)
    horizons = {name: _horizon(members) for name, members in by_environment.items()}
    references: dict[str, Reference | None] = {}
    scored: list[ScoredRun] = []
    for name, members in by_environment.items():
        unscaled = [run for group in members for run in _scored(group, horizons[name])]
        by_agent: dict[str, list[float]] = {}
        for run in unscaled:
            by_agent.setdefault(run.agent, []).append(run.score)
        by_environment[name] = [group for group in members if group.label in by_agent]
        own_scale = _reference(name, members, by_agent, by_human=by_human)
        scale = references[name] = own_scale if scales is None else scales.get(name)
        scored += [run.on(scale) if scale else run for run in unscaled]
    agents = list(dict.fromkeys(group.label for group in groups))
    scaled = {name: members for name, members in by_environment.items() if references[name]}
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
    """Return environments and agents for a fair comparison: every agent has runs in every environment."""
    present = {name: {group.label for group in members} for name, members in by_environment.items()}
    complete = [name for name, labels in present.items() if len(labels) == len(agents)]
    finished = [name for name in complete if all(_has_finished(group) for group in by_environment[name])]
    if complete:
        return finished or complete, list(agents)
    in_all = [agent for agent in agents if all(agent in labels for labels in present.values())]
    return (list(present), in_all) if present and len(in_all) > 1 else ([], [])


def _has_finished(group: RunGroup) -> bool:
    return any(run.finished for run in group.runs)


def _horizon(groups: Sequence[RunGroup]) -> int:
    return min(int(group.curve(EVALUATION_RETURN).steps[-1]) for group in groups)


def _scored(group: RunGroup, horizon: int) -> Iterator[ScoredRun]:
    curve = group.curve(EVALUATION_RETURN)
    bias, relative_bias = group.curve(BIAS_MEAN), group.curve(BIAS_NORMALISED)
    latest = horizon + group.tolerance
    for row, seed in enumerate(group.seeds):
        evaluated = curve.steps[np.isfinite(curve.values[row])]
        if not evaluated.size or evaluated[-1] < horizon - group.tolerance:
            continue
        before = evaluated[evaluated <= latest]
        if not before.size:  # evaluated less often than the other agents, and not yet within the horizon
            continue
        # The last evaluation always counts, even if the agent is evaluated less often than the others.
        counted = before[(before > (1 - LAST_SHARE) * horizon) | (before == before[-1])]
        yield ScoredRun(
            group.environment,
            group.label,
            seed,
            int(counted[-1]),
            len(counted),
            _mean_at(curve, row, counted),
            np.nan,
            _mean_at(bias, row, counted),
            _mean_at(relative_bias, row, counted),
            _mean_at(curve, row, before[-1:]),
            _mean_at(bias, row, before[-2:-1]),
            _mean_at(curve, row, before),
        )


def _mean_at(curve: LearningCurve, row: int, steps: NDArray[np.int64]) -> float:
    """Return the mean of a row of a curve over these steps; NaN if nothing was measured there."""
    values = curve.values[row, np.isin(curve.steps, steps)]
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


def _median(values: Iterator[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.median(known)) if known else np.nan


def _speed(run: RecordedRun) -> float:
    """Return the agent steps per second of a run while it learns, without evaluations."""
    starts = run.options.get("learning_starts", 0)
    steps, seconds, before = 0, 0.0, 0
    for record in run.timing:
        # A resumed run restarts from its checkpoint, so steps after it are counted twice, with their time.
        gained, before = record["step"] - before, record["step"]
        if gained > 0 and record["step"] - gained >= starts:
            steps, seconds = steps + gained, seconds + record["seconds"]
    return steps / seconds if seconds > 0 else np.nan


def _peak_memory(run: RecordedRun) -> float:
    return max((record.get("peak_memory_bytes", np.nan) for record in run.timing), default=np.nan)
