"""Related tabular methods on two chains, and their bias against the number of arms of a bandit."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import (
    DQL,
    META_CHAIN,
    QL,
    REGIMES,
    Margin,
    Regime,
    least_margin,
)
from ebql.paper.family.outcomes import ARMS, Outcome, Part
from ebql.paper.family.worlds import ARM_STD, GRADED_CHAIN
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
)

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

BANDIT_REGIMES = (REGIMES[2], REGIMES[0])  # ε = 1 and ε = 0.1, both with α = 1/n^0.8
CHAINS = (META_CHAIN, GRADED_CHAIN)

Results = dict[Part, Outcome]


def family_parts(regimes: tuple[Regime, ...] = REGIMES) -> list[Part]:
    """Return all methods on both chains under every regime."""
    return [Part(*each) for each in product(CHAINS, regimes, FAMILY)]


def family_margins(results: Results) -> list[Margin]:
    """Return the regime map of the Meta-Chain: every method's lead over Q-learning or double Q-learning."""
    cells = []
    for world, regime, agent in results:
        if world == META_CHAIN and agent in RELATIVES:
            rates, *rivals = (results[Part(world, regime, each)].rate for each in (agent, QL, DQL))
            cells.append(least_margin(regime, agent, Metric.GREEDY_CORRECT, rates, rivals))
    return cells


def arms_parts(arms: tuple[int, ...] = ARMS) -> list[Part]:
    """Return all methods on bandits with arms of mean 0, in two regimes."""
    return [
        Part(f"{number} arms", regime, agent)
        for regime, agent, number in product(BANDIT_REGIMES, FAMILY, arms)
    ]


@dataclass(frozen=True)
class ArmsPoint:
    """The final bias of the risky action, whose value is 0, with `arms` arms behind it."""

    regime: Regime
    agent: Agent
    arms: int
    bias: float
    half_width: float  # of the 95% interval over seeds


def arms_points(results: Results) -> list[ArmsPoint]:
    """Return the final bias of every part of `arms_parts`."""
    points = []
    for (world, regime, agent), outcome in results.items():
        bias = over_seeds(outcome.bias_risky)
        arms = int(world.removesuffix(" arms"))
        points.append(ArmsPoint(regime, agent, arms, float(bias.mean), float(bias.half_width)))
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


def standings_table(results: Results) -> Table:
    """Return the rate over the whole run and the final biases of every part, with intervals."""
    names = ("rate", "bias_max", "bias_risky_positive", "bias_risky_negative")
    rows = []
    for (world, regime, agent), outcome in results.items():
        row: list[object] = [world, regime.name, agent.label, agent.ensemble_size]
        for name in names:
            estimate = over_seeds(getattr(outcome, name))
            row += [float(estimate.mean), float(estimate.half_width)]
        rows.append(tuple(row))
    columns = ["world", "regime", "agent", "ensemble_size"]
    columns += [column for name in names for column in (name, f"{name}_interval")]
    return Table(tuple(columns), tuple(rows))


class Standing(NamedTuple):
    """A row of `standings_table`, as far as the line from under- to overestimation needs it."""

    world: str
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
    names = ("world", "regime", "agent", "rate", "rate_interval", "bias_max", "bias_max_interval")
    places = [table.columns.index(name) for name in names]
    rows = [[row[place] for place in places] for row in table.rows]
    return [Standing(str(w), str(r), str(a), *(float(str(x)) for x in xs)) for w, r, a, *xs in rows]


def dominated(rows: Sequence[Standing]) -> dict[str, int]:
    """Return in how many regimes of all worlds each agent is dominated by some other one."""
    counts = {row.agent: 0 for row in rows}
    for row in rows:
        rivals = [other for other in rows if (other.world, other.regime) == (row.world, row.regime)]
        counts[row.agent] += any(other.dominates(row) for other in rivals)
    return counts
