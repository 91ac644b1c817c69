"""The findings of a study: which agent is best, by how much, how surely, and how bias relates to scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ebql.analysis import statistics
from ebql.analysis.comparisons import (
    Correlation,
    Profile,
    paired_difference,
    performance_profile,
    probability_of_improvement,
    rank_correlation,
)
from ebql.analysis.scores import ScoredRun, ScoredStudy
from ebql.analysis.statistics import Interval, combination, difference, estimate

AGGREGATES = {
    "IQM": statistics.iqm,
    "mean": statistics.mean,
    "median": statistics.median,
    "optimality gap": statistics.optimality_gap,
}
BASELINES = ("DQN", "QL")

UNKNOWN = Interval(np.nan, np.nan, np.nan)

_THRESHOLDS = 201


@dataclass(frozen=True)
class Findings:
    """Every comparison in a report, of normalised scores over the environments compared."""

    ranking: Sequence[str]
    """The agents sorted by IQM, best first; empty if no environment can be compared."""
    aggregates: Mapping[str, Mapping[str, Interval]]
    """For each agent, each of `AGGREGATES`."""
    improvement: Mapping[tuple[str, str], Interval]
    """The probability that a run of the first agent beats one of the second.

    It is `UNKNOWN` with too few seeds. It has no interval if, in each environment, one agent wins all pairs:
    a bootstrap of such runs does not vary.
    """
    lead: Mapping[str, Interval]
    """The IQM of the best agent minus that of each other one."""
    paired: Mapping[str, Interval]
    """The mean difference to the best agent's run with the same seed, for agents that share seeds with it."""
    profiles: Mapping[str, Profile]
    bias: Mapping[str, Interval]
    """Each agent's bias on the study's scale, averaged over environments, for agents that measured it."""
    bias_and_score: Correlation | None
    """Correlation of the signed bias at one evaluation and the score at the next, the last one.

    In the same episodes a lucky return would raise the score and lower the bias, Q̂ − return. None if no
    environment has three runs with both.
    """
    size_of_bias_and_score: Correlation | None
    """The same for |bias|."""
    size_of_bias_and_score_of_agents: Correlation | None
    """The same within each agent's runs in each environment: do its less biased seeds score higher?"""
    correlated: Sequence[str]
    """The environments that the correlations are taken within."""

    @property
    def best(self) -> str:
        """The agent with the highest IQM."""
        return self.ranking[0]

    @property
    def rivals(self) -> list[str]:
        """The agents to compare the best one with: the second best, and the baselines."""
        return list(dict.fromkeys([*self.ranking[1:2], *(a for a in self.ranking[1:] if a in BASELINES)]))


class WithoutOne(NamedTuple):
    """A difference over all environments but one."""

    environment: str
    """The one that is left out."""
    difference: Interval


def findings(study: ScoredStudy) -> Findings:
    """Compute every comparison of a study."""
    agents = study.contenders
    scores = {agent: study.scores(agent) for agent in agents}
    aggregates = {
        agent: {name: estimate(own, statistic) for name, statistic in AGGREGATES.items()}
        for agent, own in scores.items()
    }
    ranking = sorted(agents, key=lambda agent: -aggregates[agent]["IQM"].value)
    best, others = ranking[:1], ranking[1:]
    biases = {agent: study.comparable_biases(agent) for agent in agents}
    correlated = [name for name in study.environments if len(_with_bias(study, name)) > 2]
    return Findings(
        ranking,
        aggregates,
        _improvement(scores),
        {other: difference(scores[mine], scores[other]) for mine in best for other in others},
        _paired(study, best, others),
        {
            agent: performance_profile(own, _thresholds(scores), replicates=2000)
            for agent, own in scores.items()
        },
        {agent: combination(own, [1 / len(own)] * len(own)) for agent, own in biases.items() if own},
        _correlation(study, correlated, absolute=False),
        _correlation(study, correlated, absolute=True),
        _correlation_of_agents(study, correlated),
        correlated,
    )


def paired_by_environment(study: ScoredStudy, agent: str, other: str, what: str) -> dict[str, Interval]:
    """Return the mean difference between two agents' runs with the same seed, in each environment.

    `what` is a field of `ScoredRun`, such as score, throughout or bias. Environments without a shared seed
    in which it was measured are left out.
    """
    found = {}
    for environment in study.environments:
        mine, theirs = _by_shared_seed(study, environment, (agent, other), what)
        if mine:
            found[environment] = paired_difference([mine], [theirs])
    return found


def paired_over_environments(
    study: ScoredStudy, agent: str, other: str, what: str, *, without: str | None = None
) -> Interval:
    """Return the mean difference between two agents' runs with the same seed, over environments compared.

    `what` is a field of `ScoredRun` on a scale that environments share: normalised, normalised_throughout, or
    that of the study's `bias_scale`. The environment `without` is left out. The result is `UNKNOWN` if there
    is an environment without a shared seed in which it was measured.
    """
    environments = [environment for environment in study.compared if environment != without]
    pairs = [_by_shared_seed(study, environment, (agent, other), what) for environment in environments]
    if not pairs or not all(mine for mine, _ in pairs):
        return UNKNOWN
    return paired_difference([mine for mine, _ in pairs], [theirs for _, theirs in pairs])


def paired_without_each(study: ScoredStudy, agent: str, other: str, what: str) -> list[WithoutOne]:
    """Return `paired_over_environments` without each of the environments in turn.

    A mean over environments depends on their scales, so one environment can decide it. The list is empty if
    fewer than three environments are compared, or if the difference is `UNKNOWN`.
    """
    if len(study.compared) < 3 or paired_over_environments(study, agent, other, what) is UNKNOWN:
        return []
    return [
        WithoutOne(name, paired_over_environments(study, agent, other, what, without=name))
        for name in study.compared
    ]


def paired_without_one(study: ScoredStudy, agent: str, other: str, what: str) -> WithoutOne | None:
    """Return the difference without the environment that adds most to it; None if none is left out."""
    overall = paired_over_environments(study, agent, other, what)
    without = paired_without_each(study, agent, other, what)
    return min(without, key=lambda one: one.difference.value * np.sign(overall.value), default=None)


def verdict_changes(study: ScoredStudy, agent: str, other: str, what: str) -> list[WithoutOne]:
    """Return the differences that take back what is said over all environments: above 0, or below.

    If no difference is found over all, none is sought in parts: leaving out one environment after the other
    would find some by chance.
    """
    overall = _verdict(paired_over_environments(study, agent, other, what))
    without = paired_without_each(study, agent, other, what) if overall else []
    return [one for one in without if _verdict(one.difference) != overall]


def _verdict(difference: Interval) -> int:
    return int(np.sign(difference.value)) if difference.excludes(0) else 0


def _by_shared_seed(
    study: ScoredStudy, environment: str, agents: tuple[str, str], what: str
) -> tuple[dict[int, float], dict[int, float]]:
    """Return what was measured of two agents, by the seeds that both have."""
    mine, theirs = (
        {
            run.seed: float(value)
            for run in study.scored_runs(environment, name)
            if np.isfinite(value := getattr(run, what))
        }
        for name in agents
    )
    shared = mine.keys() & theirs.keys()
    return {seed: mine[seed] for seed in shared}, {seed: theirs[seed] for seed in shared}


def _improvement(scores: Mapping[str, statistics.Scores]) -> dict[tuple[str, str], Interval]:
    wins = {(a, b): probability_of_improvement(scores[a], scores[b]) for a, b in combinations(scores, 2)}
    # The share of wins among a few runs does not estimate a probability: 1.00 is common between equal agents.
    wins = {pair: share if share.known else UNKNOWN for pair, share in wins.items()}
    # If one agent wins all pairs in each environment, no replicate varies: no width is too narrow.
    wins = {pair: x if x.low < x.high else Interval(x.value, np.nan, np.nan) for pair, x in wins.items()}
    # Ties count half, so the two probabilities sum to 1.
    losses = {(b, a): Interval(1 - x.value, 1 - x.high, 1 - x.low) for (a, b), x in wins.items()}
    return wins | losses


def _paired(study: ScoredStudy, best: Sequence[str], others: Sequence[str]) -> dict[str, Interval]:
    found = {
        other: paired_over_environments(study, mine, other, "normalised") for mine in best for other in others
    }
    return {other: difference for other, difference in found.items() if difference is not UNKNOWN}


def _thresholds(scores: Mapping[str, statistics.Scores]) -> statistics.Floats:
    everything = np.concatenate([own for by_environment in scores.values() for own in by_environment])
    return np.linspace(min(0.0, everything.min()), max(1.0, everything.max()), _THRESHOLDS)


def _with_bias(study: ScoredStudy, environment: str) -> list[ScoredRun]:
    return [run for run in study.scored_runs(environment) if np.isfinite(run.bias_before)]


def _correlation(study: ScoredStudy, environments: Sequence[str], *, absolute: bool) -> Correlation | None:
    return _correlated([_with_bias(study, environment) for environment in environments], absolute=absolute)


def _correlation_of_agents(study: ScoredStudy, environments: Sequence[str]) -> Correlation | None:
    runs = [
        [run for run in _with_bias(study, environment) if run.agent == agent]
        for environment in environments
        for agent in study.agents
    ]
    return _correlated([own for own in runs if len(own) > 2], absolute=True)


def _correlated(runs: Sequence[Sequence[ScoredRun]], *, absolute: bool) -> Correlation | None:
    if not runs:
        return None
    biases = [np.array([run.bias_before for run in own]) for own in runs]
    scores = [np.array([run.last_score for run in own]) for own in runs]
    return rank_correlation([np.abs(own) for own in biases] if absolute else biases, scores)
