"""Tabular runs as groups over seeds, so that a study of tables is scored and compared like any other."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from ebql.analysis.references import Reference
from ebql.analysis.runs import LearningCurve, RecordedRun, RunGroup, labelled, same_seed
from ebql.runs.metric_names import BIAS_MEAN, BIAS_NORMALISED, EVALUATION_RETURN
from ebql.studies.kinds import TABULAR, kind_of
from ebql.studies.tables.agents import table_agent
from ebql.studies.tables.runs import SeedCurves, read_seed_curves
from ebql.studies.tables.worlds import table_world
from ebql.tabular import Agent

# The exact value of the greedy policy takes the place of the return of evaluations.
_MEASURES = {EVALUATION_RETURN: "value", BIAS_MEAN: "bias"}


class TableRun(RecordedRun):
    """One tabular run, of many seeds."""

    @property
    def table_agent(self) -> Agent:
        """The agent."""
        return table_agent(self.config["agent"], self.options)

    @property
    def name(self) -> str:
        """The label, or else the agent's name as people write it: QL, DQL, EBQL 5."""
        return self.label or self.table_agent.label

    @property
    def finished(self) -> bool:
        """Whether any seed has learnt: seeds are saved once complete, and a study can always add more."""
        return bool(self.records)


@dataclass(frozen=True)
class TableGroup(RunGroup):
    """The seeds of one agent in one environment; the return is the exact value of the greedy policy."""

    curves: SeedCurves

    unit: ClassVar[str] = "episodes"
    work_unit: ClassVar[str] = "seeds"

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds, one for each row of a learning curve."""
        seeds: list[int] = self.curves.seeds.tolist()
        return seeds

    @property
    def discount(self) -> float:
        """The discount of the values."""
        return float(self.runs[0].options["discount"])

    def curve(self, metric: str) -> LearningCurve:
        """Return a metric over episodes; without any episodes if tabular runs do not measure it."""
        if metric == BIAS_NORMALISED:
            scale = abs(_start_values(self.environment, self.discount)[1])
            biases = self.curves.metrics[_MEASURES[BIAS_MEAN]]
            relative = biases / scale if scale > 0 else np.full_like(biases, np.nan)
            return LearningCurve(self.curves.episodes, relative)
        if metric not in _MEASURES:
            return LearningCurve(np.empty(0, np.int64), np.empty((len(self.curves.seeds), 0)))
        return LearningCurve(self.curves.episodes, self.curves.metrics[_MEASURES[metric]])

    def reference(self) -> Reference | None:
        """Return the exact scale from the random to the optimal policy; None if their values are equal."""
        random, optimal = _start_values(self.environment, self.discount)
        return Reference(random, optimal, "random play", "the optimal policy") if optimal > random else None


def is_of_tables(run: RecordedRun) -> bool:
    """Whether this is a tabular run."""
    return kind_of(run.config) == TABULAR


def table_groups(runs: Sequence[RecordedRun], *, accept_changes: bool = False) -> list[TableGroup]:
    """Return one group for each tabular run in which a seed has learnt, small ensembles first.

    If agents of the same name differ in their options, those options are added to their labels. Two runs with
    the same label and seed are refused.
    """
    table_runs = [TableRun(**vars(run)) for run in runs]
    table_runs.sort(key=lambda run: (run.environment, run.table_agent.ensemble_size))
    measured = [
        (run, curves)
        for run in table_runs
        if (curves := read_seed_curves(run.path, accept_changes=accept_changes)) is not None
    ]
    labels = {id(run): label for label, run in labelled([run for run, _ in measured])}
    groups = [TableGroup(run.environment, labels[id(run)], [run], curves) for run, curves in measured]
    for one, other in combinations(groups, 2):
        if (one.environment, one.label) == (other.environment, other.label):
            for seed in set(one.seeds) & set(other.seeds):
                raise same_seed(one.environment, one.label, seed, one.runs[0], other.runs[0])
    return groups


def _start_values(environment: str, discount: float) -> tuple[float, float]:
    """Return the discounted values of the random and of the optimal policy at the start."""
    world = table_world(environment)
    # A table of zeros has no preference, so its greedy policy is random.
    zeros = np.zeros((len(world.states), world.mdp.n_actions))
    measured = world.measures(zeros, discount)
    expected = float(zeros.max(-1) @ world.mdp.start[world.states])
    return float(measured["value"]), expected - float(measured["bias_optimal"])
