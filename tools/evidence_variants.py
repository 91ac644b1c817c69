"""What a planned study of variants says: each agent beside one agent of another study, paired by seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ebql.analysis.findings import paired_over_environments, rests_on_one
from ebql.analysis.scores import ScoredStudy, score
from ebql.analysis.statistics import Interval, combination
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
    "300,000 steps of agents that differ from EBQL with K = 5 in one respect each.",
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

HEADER = ("agent", "score", "score averaged over training", "bias", "its bias", "in words", "games", "seeds")
DIFFERENCES = 3
"""The columns of `HEADER` after the first that are differences to the baseline."""


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


def besides(of: Variants, baseline: str, study: ScoredStudy, other: ScoredStudy) -> Iterator[Beside]:
    """Yield the differences of each agent of `study` to its baseline in the other study.

    Scores are normalised by the agents of the other study, so that all agents have the same scale.
    """
    for agent in study.agents:
        own = [group for group in study.groups if group.label == agent]
        games = {group.environment for group in own}
        theirs = [group for group in other.groups if group.environment in games]
        together = score([*theirs, *own], scales=other.references)
        if together.compared:
            yield beside(together, agent, of.pairs.get(agent, baseline))


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
        pair = found.agent, found.baseline
        biases = found.together.comparable_biases(found.agent)
        of_score, of_bias, words = differences(found.score, found.bias, resting(found.together, *pair))
        speed = _in_words(
            found.throughout, "learns faster", "learns more slowly", "no difference in speed found"
        )
        speed += resting(found.together, *pair, "normalised_throughout")
        yield (
            found.agent,
            of_score,
            with_interval(found.throughout, sign=True),
            of_bias,
            with_interval(combination(biases, [1 / len(biases)] * len(biases)), sign=True),
            f"{words}, {speed}" if found.score.known else "too few seeds to tell",
            str(found.games),
            str(found.seeds),
        )


def resting(study: ScoredStudy, agent: str, other: str, what: str = "normalised") -> str:
    """Return without which game a difference in scores is not beyond chance, in words; often nothing."""
    one = rests_on_one(study, agent, other, what)
    return "" if one is None else f" (not without {game_name(one.environment)})"


def game_name(environment: str) -> str:
    """Return the game's name: Pong of ALE/Pong-v5."""
    return environment.partition("/")[2].rpartition("-")[0]


def differences(score: Interval, bias: Interval, qualified: str = "") -> tuple[str, str, str]:
    """Return two differences, and in words which of them are beyond chance.

    `qualified` is added to what is said about scores.
    """
    words = (
        _in_words(score, "scores higher", "scores lower", "no difference in scores found") + qualified,
        _in_words(bias, "has a higher bias", "has a lower bias", "no difference in bias found"),
    )
    return with_interval(score, sign=True), with_interval(bias, sign=True), ", ".join(words)


def _in_words(difference: Interval, more: str, less: str, neither: str) -> str:
    if not difference.excludes(0):
        return neither
    return more if difference.value > 0 else less
