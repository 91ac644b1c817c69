"""What a planned study of variants says: each agent beside one agent of another study, paired by seed."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

import numpy as np

from ebql.analysis.findings import (
    WithoutOne,
    paired_by_environment,
    paired_over_environments,
    verdict_changes,
)
from ebql.analysis.scores import ScoredStudy, score
from ebql.analysis.statistics import Floats, Interval, combination
from ebql.report.study.words import with_interval


@dataclass(frozen=True)
class Variants:
    """A kept study whose agents are compared with those of `beside`, over the games that both have."""

    name: str
    """Its folder below `results/`."""
    title: str
    runs: str
    """What was run."""
    beside: str
    """The folder of the other study."""
    baselines: tuple[str, ...]
    """The agents of the other study that variants are compared with, or what `pairs` have in common."""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """The agent of the other study that each variant is compared with, if they differ."""


MEMBERS = Variants(
    "minatar-members",
    "Ten members, and Maxmin, on five MinAtar games",
    "300,000 steps of EBQL with K = 10 and of Maxmin with K = 4.",
    "minatar",
    ("EBQL 5",),
)
CONTROLS = Variants(
    "minatar-controls",
    "Ensembles without EBQL's rule, on five MinAtar games",
    "300,000 steps of Ensemble-DQN with five members and of Averaged-DQN with five past networks.",
    "minatar",
    ("EBQL 5", "DQN"),
)
WHY = Variants(
    "minatar-why",
    "The members' data, torsos and number, on three MinAtar games",
    "300,000 steps of agents that differ from EBQL with K = 5 in one option each.",
    "minatar",
    ("EBQL 5",),
)
BFLOAT16 = Variants(
    "minatar-bfloat16",
    "Products in bfloat16, on two MinAtar games",
    "300,000 steps of DQN and of EBQL with K = 5, with `--precision bfloat16`.",
    "minatar",
    ("float32",),
    {"DQN, bfloat16": "DQN", "EBQL 5, bfloat16": "EBQL 5"},
)

HEADER = (
    "agent",
    "score",
    "score averaged over training",
    "bias",
    "its bias",
    "its mean absolute bias",
    "in words",
    "games",
    "seeds",
)
DIFFERENCES = 3
"""The columns of `HEADER` after the first that are differences to the baseline."""

Words = tuple[str, str, str]
SCORE: Words = ("scores higher", "scores lower", "no difference in scores found")
SPEED: Words = ("learns faster", "learns more slowly", "no difference in speed found")
BIAS: Words = ("has a higher bias", "has a lower bias", "no difference in bias found")
"""What is said of differences above 0, below 0, and not beyond chance."""


class Beside(NamedTuple):
    """An agent's differences to a baseline: means over games and over the seeds that both have."""

    agent: str
    baseline: str
    score: Interval
    """Of normalised scores."""
    throughout: Interval
    """Of normalised scores averaged over training."""
    bias: Interval
    """On the scale on which the study compares biases."""
    together: ScoredStudy
    """The runs of both, over the games that both have played."""

    @property
    def games(self) -> int:
        """The number of games."""
        return len(self.together.compared)

    @property
    def seeds(self) -> int:
        """The number of seeds that both have in every game."""
        runs = self.together.scored_runs
        shared = (
            {run.seed for run in runs(game, self.agent)} & {run.seed for run in runs(game, self.baseline)}
            for game in self.together.compared
        )
        return min(map(len, shared))

    @property
    def kinds(self) -> tuple[tuple[Interval, str, Words], ...]:
        """Each difference, its field of `ScoredRun`, and what is said of it."""
        return (
            (self.score, "normalised", SCORE),
            (self.throughout, "normalised_throughout", SPEED),
            (self.bias, self.together.bias_scale.field, BIAS),
        )


def besides(of: Variants, baseline: str, study: ScoredStudy, other: ScoredStudy) -> Iterator[Beside]:
    """Yield the differences of each agent of `study` to its baseline in the other study."""
    for agent in study.agents:
        found = beside(joined(study, other, [agent]), agent, of.pairs.get(agent, baseline))
        if found.together.compared:
            yield found


def joined(
    study: ScoredStudy, other: ScoredStudy, agents: Sequence[str], baselines: Container[str] | None = None
) -> ScoredStudy:
    """Return agents of a study with those of another one, or with `baselines` only, in the agents' games.

    Scores are normalised by the agents of the other study, so that the scale is the same for all variants.
    """
    own = [group for group in study.groups if group.label in agents]
    games = {group.environment for group in own}
    theirs = [
        group
        for group in other.groups
        if group.environment in games and (baselines is None or group.label in baselines)
    ]
    return score([*theirs, *own], scales=other.references)


def beside(study: ScoredStudy, agent: str, baseline: str) -> Beside:
    """Return the differences between two agents of a study."""

    def of(field: str) -> Interval:
        return paired_over_environments(study, agent, baseline, field)

    bias = study.bias_scale.field
    return Beside(agent, baseline, of("normalised"), of("normalised_throughout"), of(bias), study)


def variant_rows(
    of: Variants, baseline: str, study: ScoredStudy, other: ScoredStudy
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each agent of `study`: its differences to a baseline, and its own bias."""
    for found in besides(of, baseline, study, other):
        biases = found.together.comparable_biases(found.agent)
        told = (
            in_words(found.together, found.agent, found.baseline, field, words)
            for _, field, words in found.kinds
        )
        yield (
            found.agent,
            *(with_interval(difference, sign=True) for difference, *_ in found.kinds),
            with_interval(combination(biases, [1 / len(biases)] * len(biases)), sign=True),
            f"{fmean(abs(own.mean()) for own in biases):.2f}",
            ", ".join(told) if found.score.known else "too few seeds to tell",
            str(found.games),
            str(found.seeds),
        )


def in_each_game(found: Sequence[Beside]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each agent and kind of difference, with a cell for each game: in points, and Q̂."""
    environments = list(dict.fromkeys(name for one in found for name in one.together.compared))
    yield ("agent", "difference", *map(game_name, environments))
    fields = {"score": "score", "throughout": "score averaged over training", "bias": "bias, Q̂ − return"}
    for what, name in fields.items():
        for one in found:
            games = paired_by_environment(one.together, one.agent, one.baseline, what)
            cells = (with_interval(games[name], sign=True) if name in games else "–" for name in environments)
            yield f"{one.agent} − {one.baseline}", name, *cells


def unpaired_verdicts(found: Sequence[Beside]) -> list[str]:
    """Return what would be said with all seeds of both agents as independent samples, where it differs."""
    changed = []
    for one in found:
        for paired, what, words in one.kinds:
            samples = [
                finite(one.together, game, agent, what)
                for agent in (one.agent, one.baseline)
                for game in one.together.compared
            ]
            if not all(map(len, samples)):
                continue
            weights = [sign / one.games for sign in (1, -1) for _ in range(one.games)]
            unpaired = combination(samples, weights)
            if (verdict := chosen(unpaired, words)) != chosen(paired, words):
                changed.append(f"{one.agent}: {verdict}, {with_interval(unpaired, sign=True)}")
    return changed


def finite(study: ScoredStudy, game: str, agent: str, field: str) -> Floats:
    """Return what the runs of an agent in a game measured of a field of `ScoredRun`, (runs,)."""
    values = np.array([getattr(run, field) for run in study.scored_runs(game, agent)], np.float64)
    return values[np.isfinite(values)]


def in_words(study: ScoredStudy, agent: str, other: str, field: str, words: Words) -> str:
    """Say what a difference over games is, and without which single games one could not say so."""
    said = chosen(paired_over_environments(study, agent, other, field), words)
    exceptions: dict[str, list[WithoutOne]] = {}
    for one in verdict_changes(study, agent, other, field):
        exceptions.setdefault(chosen(one.difference, words), []).append(one)
    told = [
        f"{'not' if verdict == words[-1] else f'but {verdict}'} without {_or(ones)}"
        for verdict, ones in exceptions.items()
    ]
    return f"{said} ({', '.join(told)})" if told else said


def chosen(difference: Interval, words: Words) -> str:
    """Return what is said of a difference."""
    above, below, neither = words
    if not difference.excludes(0):
        return neither
    return above if difference.value > 0 else below


def _or(without: Sequence[WithoutOne]) -> str:
    return " or ".join(game_name(one.environment) for one in without)


def game_name(environment: str) -> str:
    """Return the game's name: Pong of ALE/Pong-v5."""
    return environment.partition("/")[2].rpartition("-")[0]
