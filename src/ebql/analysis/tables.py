"""Runs of tables as groups over seeds, so that a study of tables is scored and compared like any other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebql.analysis.references import Reference
from ebql.analysis.runs import BIAS, NORMALISED_BIAS, RETURN, Course, DeepRun, RunGroup
from ebql.studies.kinds import TABULAR, kind_of
from ebql.studies.tables.agents import table_agent
from ebql.studies.tables.runs import SeedCurves, read_seed_curves
from ebql.studies.tables.worlds import table_world
from ebql.tabular import Agent

_MEASURES = {RETURN: "value", BIAS: "bias"}


class TableRun(DeepRun):
    """One run of tables, of many seeds."""

    @property
    def table_agent(self) -> Agent:
        """The agent."""
        return table_agent(self.config["agent"], self.options)

    @property
    def name(self) -> str:
        """The study's own label, or else the agent as a person would call it: QL, DQL, EBQL 5."""
        label: str = self.config["label"]
        return self.table_agent.label if label == self.config["agent"] else label

    @property
    def finished(self) -> bool:
        """Whether a seed has learnt: each one does so to its end, and a study may always ask for more."""
        return bool(self.records)


@dataclass(frozen=True)
class TableGroup(RunGroup):
    """The seeds of one agent in one world; its return is the exact value of the greedy policy."""

    curves: SeedCurves

    unit: ClassVar[str] = "episodes"
    work_unit: ClassVar[str] = "seeds"

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds, one for each row of a course."""
        seeds: list[int] = self.curves.seeds.tolist()
        return seeds

    @property
    def discount(self) -> float:
        """The discount of the values."""
        return float(self.runs[0].options["discount"])

    def course(self, metric: str) -> Course:
        """Return a metric over episodes, a row for each seed; empty if it is not measured of tables."""
        if metric == NORMALISED_BIAS:
            scale = abs(_start_values(self.environment, self.discount)[1])
            biases = self.curves.metrics[_MEASURES[BIAS]]
            return Course(self.curves.episodes, biases / scale if scale > 0 else np.full_like(biases, np.nan))
        if metric not in _MEASURES:
            return Course(np.empty(0, np.int64), np.empty((len(self.curves.seeds), 0)))
        return Course(self.curves.episodes, self.curves.metrics[_MEASURES[metric]])

    def reference(self) -> Reference | None:
        """Return the scale from the random policy to the optimal one, both exact; None if they are equal."""
        random, optimal = _start_values(self.environment, self.discount)
        return Reference(random, optimal, "random play", "the optimal policy") if optimal > random else None


def is_of_tables(run: DeepRun) -> bool:
    """Whether a run folder holds tables."""
    return kind_of(run.config) == TABULAR


def table_groups(runs: Sequence[DeepRun]) -> list[TableGroup]:
    """Return the groups of those runs of tables in which a seed has learned, small ensembles first."""
    found = [TableRun(run.path, run.config, run.records, run.timing) for run in runs]
    found.sort(key=lambda run: (run.environment, run.table_agent.ensemble_size))
    measured = [(run, curves) for run in found if (curves := read_seed_curves(run.path)) is not None]
    return [TableGroup(run.environment, run.name, [run], curves) for run, curves in measured]


def _start_values(environment: str, discount: float) -> tuple[float, float]:
    """Return what the random and the optimal policy earn from the first state on, discounted."""
    world = table_world(environment)
    # A table without a preference plays at random.
    untaught = np.zeros((len(world.states), world.mdp.n_actions))
    measured = world.measures(untaught, discount)
    expected = float(untaught.max(-1) @ world.mdp.start[world.states])
    return float(measured["value"]), expected - float(measured["bias_optimal"])
