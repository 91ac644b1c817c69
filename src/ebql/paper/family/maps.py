"""The whole family on the chains: the regime map and the bias, and how the bias grows with the arms."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from ebql.environments import chain
from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import (
    DQL,
    EPISODES,
    META_CHAIN,
    QL,
    REGIMES,
    Courses,
    Regime,
    learn_under,
    run_courses,
)
from ebql.paper.tables import Table
from ebql.tabular import (
    EBQL,
    REDQ,
    SUNRISE,
    Agent,
    AveragedQLearning,
    BootstrappedQLearning,
    ClippedDoubleQLearning,
    CrossQLearning,
    EnsembleQLearning,
    Group,
    Maxmin,
    Metric,
    RandomisedPriors,
    SelfCorrectingQLearning,
    SpeedyQLearning,
    WeightedDoubleQLearning,
    measure,
)

Progress = Callable[[str], None]

SEEDS = 1000
RECORD_EVERY = 50

# Each with its usual parameters, and ten members where any number will do.
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
)
FAMILY: tuple[Agent, ...] = (QL, DQL, *RELATIVES)

# The bandits: pulls of one of so many arms, all worth nothing on average, behind one choice that leads there.
ARMS = (2, 4, 8, 16, 32)
ARM_STD = 5.0
BANDIT_REGIMES = (REGIMES[2], REGIMES[0])  # ε = 1 and ε = 0.1, both with α = 1/n^0.8


def run_family(
    progress: Progress,
    *,
    regimes: tuple[Regime, ...] = REGIMES,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
) -> Courses:
    """Run the family on the Meta-Chain under every regime; `progress` hears of each course."""
    return run_courses(
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
    """An agent's final bias of a choice that is worth nothing, when `arms` of them lie behind it."""

    regime: Regime
    agent: Agent
    arms: int
    bias: float
    half_width: float  # of the 95% interval over seeds


def run_arms(
    progress: Progress, *, arms: tuple[int, ...] = ARMS, seeds: int = SEEDS, episodes: int = EPISODES
) -> list[ArmsPoint]:
    """Let the family pull arms of mean 0 and large spread in two regimes; `progress` hears of each agent."""
    points = []
    for regime, agent in product(BANDIT_REGIMES, FAMILY):
        for number in arms:
            mdp = chain(0.0, std=ARM_STD, actions=number)
            history = learn_under(regime, mdp, agent, seeds=seeds, episodes=episodes, record_every=episodes)
            found = over_seeds(measure(history)[Metric.BIAS_RISKY][:, -1, 0])
            points.append(ArmsPoint(regime, agent, number, float(found.mean), float(found.half_width)))
        progress(f"{agent.label} · bandits · {regime.name}")
    return points


def arms_table(points: list[ArmsPoint]) -> Table:
    """One row for each agent and number of arms in each regime."""
    return Table(
        ("regime", "agent", "ensemble_size", "arms", "arm_std", "bias", "interval"),
        tuple(
            (p.regime.name, p.agent.label, p.agent.ensemble_size, p.arms, ARM_STD, p.bias, p.half_width)
            for p in points
        ),
    )


def standings_table(courses: Courses) -> Table:
    """Rate over the whole run and final biases of every course, each with its interval."""
    rows = []
    for course in courses.all:
        rate = over_seeds(course.average(Metric.GREEDY_CORRECT))
        row: list[object] = [course.regime.name, course.agent.label, course.agent.ensemble_size]
        row += [float(rate.mean), float(rate.half_width)]
        for metric, group in BIASES:
            bias = over_seeds(course.final(metric, group))
            row += [float(bias.mean), float(bias.half_width)]
        rows.append(tuple(row))
    biases = [f"{metric.value}_{group.value}" for metric, group in BIASES]
    columns = ["regime", "agent", "ensemble_size", "rate", "rate_interval"]
    columns += [name for bias in biases for name in (bias, f"{bias}_interval")]
    return Table(tuple(columns), tuple(rows))


BIASES = (
    (Metric.BIAS_MAX, Group.ALL),
    (Metric.BIAS_RISKY, Group.POSITIVE),
    (Metric.BIAS_RISKY, Group.NEGATIVE),
)
