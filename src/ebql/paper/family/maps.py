"""Related tabular methods on the Meta-Chain, and their bias against the number of arms of a bandit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from ebql.environments import chain
from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import (
    DQL,
    EPISODES,
    META_CHAIN,
    QL,
    REGIMES,
    LearningCurves,
    Regime,
    learn_under,
    run_learning_curves,
)
from ebql.paper.table import Table
from ebql.tabular import (
    EBQL,
    REDQ,
    SUNRISE,
    AdaptiveOrderQLearning,
    Agent,
    AveragedQLearning,
    BootstrappedQLearning,
    CandidateQLearning,
    ClippedDoubleQLearning,
    CrossQLearning,
    EnsembleQLearning,
    Group,
    KEQLearning,
    Maxmin,
    Metric,
    OrderQLearning,
    RandomisedPriors,
    RobustQLearning,
    SelfCorrectingQLearning,
    SmoothedQLearning,
    SpeedyQLearning,
    TEQLearning,
    WeightedDoubleQLearning,
    WeightedQLearning,
    measure,
)

Progress = Callable[[str], None]

SEEDS = 1000
RECORD_EVERY = 50

# Each method has its usual parameters, and ten members where the number is free.
MEMBERS = 10
RELATIVES: tuple[Agent, ...] = (
    EBQL(MEMBERS),
    EBQL(MEMBERS, split="adaptive"),
    CrossQLearning(MEMBERS),
    ClippedDoubleQLearning(),
    WeightedDoubleQLearning(),
    Maxmin(4),
    REDQ(MEMBERS, 2),
    SelfCorrectingQLearning(),
    EnsembleQLearning(MEMBERS),
    AveragedQLearning(MEMBERS),
    SpeedyQLearning(),
    RandomisedPriors(MEMBERS),
    BootstrappedQLearning(MEMBERS),
    SUNRISE(MEMBERS),
    WeightedQLearning(MEMBERS),
    TEQLearning(MEMBERS),
    KEQLearning(MEMBERS),
    OrderQLearning(4, 2),
    AdaptiveOrderQLearning(MEMBERS),
    RobustQLearning(MEMBERS),
    CandidateQLearning(),
    SmoothedQLearning(),
)
FAMILY: tuple[Agent, ...] = (QL, DQL, *RELATIVES)

# The bandits: a risky action leads to a state with this many arms, all of mean 0.
ARMS = (2, 4, 8, 16, 32)
ARM_STD = 5.0
BANDIT_REGIMES = (REGIMES[2], REGIMES[0])  # ε = 1 and ε = 0.1, both with α = 1/n^0.8


def run_family(
    progress: Progress,
    *,
    regimes: tuple[Regime, ...] = REGIMES,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
) -> LearningCurves:
    """Train all methods on the Meta-Chain under every regime; call `progress` after each."""
    return run_learning_curves(
        progress,
        regimes=regimes,
        worlds=(META_CHAIN,),
        agents=FAMILY,
        seeds=seeds,
        episodes=episodes,
        record_every=RECORD_EVERY,
    )


@dataclass(frozen=True)
class ArmsPoint:
    """The final bias of the risky action, whose value is 0, with `arms` arms behind it."""

    regime: Regime
    agent: Agent
    arms: int
    bias: float
    half_width: float  # of the 95% interval over seeds


def run_arms(
    progress: Progress, *, arms: tuple[int, ...] = ARMS, seeds: int = SEEDS, episodes: int = EPISODES
) -> list[ArmsPoint]:
    """Train all methods on bandits with arms of mean 0 in two regimes; call `progress` after each method."""
    points = []
    for regime, agent in product(BANDIT_REGIMES, FAMILY):
        for number in arms:
            mdp = chain(0.0, std=ARM_STD, actions=number)
            history = learn_under(regime, mdp, agent, seeds=seeds, episodes=episodes, record_every=episodes)
            bias = over_seeds(measure(history)[Metric.BIAS_RISKY][:, -1, 0])
            points.append(ArmsPoint(regime, agent, number, float(bias.mean), float(bias.half_width)))
        progress(f"{agent.label} · bandits · {regime.name}")
    return points


def arms_table(points: list[ArmsPoint]) -> Table:
    """Return one row for each agent and number of arms in each regime."""
    return Table(
        ("regime", "agent", "ensemble_size", "arms", "arm_std", "bias", "interval"),
        tuple(
            (p.regime.name, p.agent.label, p.agent.ensemble_size, p.arms, ARM_STD, p.bias, p.half_width)
            for p in points
        ),
    )


def standings_table(curves: LearningCurves) -> Table:
    """Return the rate over the whole run and the final biases of every learning curve, with intervals."""
    rows = []
    for curve in curves.all:
        rate = over_seeds(curve.average(Metric.GREEDY_CORRECT))
        row: list[object] = [curve.regime.name, curve.agent.label, curve.agent.ensemble_size]
        row += [float(rate.mean), float(rate.half_width)]
        for metric, group in BIASES:
            bias = over_seeds(curve.final(metric, group))
            row += [float(bias.mean), float(bias.half_width)]
        rows.append(tuple(row))
    biases = [f"{metric.value}_{group.value}" for metric, group in BIASES]
    columns = ["regime", "agent", "ensemble_size", "rate", "rate_interval"]
    columns += [name for bias in biases for name in (bias, f"{bias}_interval")]
    return Table(tuple(columns), tuple(rows))


class Standing(NamedTuple):
    """A row of `standings_table`, as far as the line from under- to overestimation needs it."""

    regime: str
    agent: str
    rate: float
    rate_half_width: float
    bias: float  # of the state's value
    bias_half_width: float

    def dominates(self, other: "Standing") -> bool:
        """Whether it has a higher rate and a smaller |bias| than `other`, and no intervals touch."""
        ahead = self.rate - self.rate_half_width > other.rate + other.rate_half_width
        return ahead and abs(self.bias) + self.bias_half_width < abs(other.bias) - other.bias_half_width


def standings(table: Table) -> list[Standing]:
    """Return the rows of `standings_table`."""
    names = ("regime", "agent", "rate", "rate_interval", "bias_max_all", "bias_max_all_interval")
    places = [table.columns.index(name) for name in names]
    rows = [[row[place] for place in places] for row in table.rows]
    return [Standing(str(r), str(a), *(float(str(x)) for x in numbers)) for r, a, *numbers in rows]


def dominated(rows: Sequence[Standing]) -> dict[str, int]:
    """Return in how many regimes each agent is dominated by some other one."""
    counts = {row.agent: 0 for row in rows}
    for row in rows:
        counts[row.agent] += any(other.regime == row.regime and other.dominates(row) for other in rows)
    return counts


BIASES = (
    (Metric.BIAS_MAX, Group.ALL),
    (Metric.BIAS_RISKY, Group.POSITIVE),
    (Metric.BIAS_RISKY, Group.NEGATIVE),
)
