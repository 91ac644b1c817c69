"""What a planned study of variants says: each agent beside one agent of another study, paired by seed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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


def variant_rows(
    of: Variants, baseline: str, study: ScoredStudy, other: ScoredStudy
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each agent of `study`: its differences to a baseline, and its own bias.

    Scores are normalised by the agents of the other study, so that all rows have the same scale. A difference
    is the mean over games and over the seeds that both agents have.
    """
    for agent in study.agents:
        own = [group for group in study.groups if group.label == agent]
        games = {group.environment for group in own}
        beside = [group for group in other.groups if group.environment in games]
        together = score([*beside, *own], scales=other.references)
        if not together.compared:
            continue
        pair = agent, of.pairs.get(agent, baseline)
        by_score = paired_over_environments(together, *pair, "normalised")
        by_speed = paired_over_environments(together, *pair, "normalised_throughout")
        by_bias = paired_over_environments(together, *pair, together.bias_scale.field)
        biases = together.comparable_biases(agent)
        seeds = [
            {run.seed for run in together.scored_runs(game, agent)}
            & {run.seed for run in together.scored_runs(game, pair[1])}
            for game in together.compared
        ]
        of_score, of_bias, words = differences(by_score, by_bias, resting(together, *pair))
        speed = _in_words(by_speed, "learns faster", "learns more slowly", "no difference in speed found")
        speed += resting(together, *pair, "normalised_throughout")
        yield (
            agent,
            of_score,
            with_interval(by_speed, sign=True),
            of_bias,
            with_interval(combination(biases, [1 / len(biases)] * len(biases)), sign=True),
            f"{words}, {speed}" if by_score.known else "too few seeds to tell",
            str(len(together.compared)),
            str(min(map(len, seeds))),
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
