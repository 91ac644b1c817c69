"""Figures 3 and 5 and the regime map: the tables on the Meta-Chain, however they explore and step.

The paper says neither how its agents explored nor how it broke ties, and its claims depend on the first.
So every figure comes in every regime of a grid: four ways to explore times three step sizes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP, chain, meta_chain
from ebql.estimators.intervals import MeanOverSeeds, over_seeds
from ebql.tabular import (
    EBQL,
    Agent,
    DoubleQLearning,
    Group,
    History,
    Metric,
    QLearning,
    Schedule,
    group_mean,
    inverse_visits,
    learn,
    measure,
)

Floats = NDArray[np.float64]

EPISODES = 5000
SEEDS = 50
RECORD_EVERY = 25

# Double Q-learning alternates between its tables as in the paper's appendix.
QL, DQL = QLearning(), DoubleQLearning("alternate")
ENSEMBLES: tuple[Agent, ...] = tuple(EBQL(size) for size in (3, 7, 10, 15, 25))
AGENTS: tuple[Agent, ...] = (QL, DQL, *ENSEMBLES)

NEGATIVE_CHAIN, POSITIVE_CHAIN, META_CHAIN = "mean -0.2", "mean +0.2", "meta-chain"
# Not in the paper: where the exact value is zero, tables of zeros are no bias, and only the rule's is left.
NEUTRAL_CHAIN = "mean 0"
WORLDS: dict[str, MDP] = {
    NEGATIVE_CHAIN: chain(-0.2),
    POSITIVE_CHAIN: chain(+0.2),
    META_CHAIN: meta_chain(),
    NEUTRAL_CHAIN: chain(0.0),
}
FIGURE_3_WORLDS = (NEGATIVE_CHAIN, POSITIVE_CHAIN, META_CHAIN)


@dataclass(frozen=True)
class Regime:
    """One way to explore and to step."""

    epsilon_name: str
    epsilon: Schedule
    alpha_name: str
    alpha: Schedule

    @property
    def name(self) -> str:
        """As it is printed."""
        return f"ε = {self.epsilon_name}, α = {self.alpha_name}"

    @property
    def slug(self) -> str:
        """As it stands in file names."""
        plain = {"1/√n(s)": "sqrt", "1/n^0.8": "n0.8", "1/n": "n1"}
        epsilon, alpha = (plain.get(name, name) for name in (self.epsilon_name, self.alpha_name))
        return f"epsilon-{epsilon}-alpha-{alpha}"


EPSILONS = {
    "0.1": Schedule(0.1),
    "0.3": Schedule(0.3),
    "1": Schedule(1.0),
    "1/√n(s)": inverse_visits(0.5),
}
ALPHAS = {"1/n^0.8": inverse_visits(0.8), "1/n": inverse_visits(1.0), "0.1": Schedule(0.1)}
REGIMES = tuple(
    Regime(epsilon_name, epsilon, alpha_name, alpha)
    for (alpha_name, alpha), (epsilon_name, epsilon) in product(ALPHAS.items(), EPSILONS.items())
)


@dataclass(frozen=True)
class Course:
    """How one agent fared in one world under one regime."""

    regime: Regime
    world: str
    agent: Agent
    episodes: NDArray[np.int64]  # (R,), number of episodes done
    metrics: dict[tuple[Metric, Group], NDArray[np.float32]]  # each (seeds, R)

    def curve(self, metric: Metric, group: Group = Group.ALL) -> MeanOverSeeds:
        """The metric over time, mean over seeds; arrays of shape (R,)."""
        return over_seeds(self.metrics[metric, group].astype(np.float64))

    def average(self, metric: Metric, group: Group = Group.ALL) -> Floats:
        """The metric averaged over the whole run, one number a seed, `(seeds,)`."""
        averaged: Floats = self.metrics[metric, group].mean(1, dtype=np.float64)
        return averaged

    def final(self, metric: Metric, group: Group = Group.ALL) -> Floats:
        """The metric after the last episode, one number a seed, `(seeds,)`."""
        return self.metrics[metric, group][:, -1].astype(np.float64)


class Courses:
    """All courses, found by regime, world and agent."""

    def __init__(self, courses: Iterable[Course]) -> None:
        """Index the courses."""
        self.all = tuple(courses)
        self._found = {(c.regime.name, c.world, c.agent): c for c in self.all}
        self.regimes = tuple({c.regime.name: c.regime for c in self.all}.values())

    def get(self, regime: Regime, world: str, agent: Agent) -> Course:
        """Return one course."""
        return self._found[regime.name, world, agent]


def learn_under(
    regime: Regime, mdp: MDP, agent: Agent, *, seeds: int, episodes: int, record_every: int
) -> History:
    """Let one agent learn under one regime; γ = 1 and, priors apart, zero tables, as in the paper."""
    return learn(
        mdp,
        agent,
        episodes=episodes,
        seeds=seeds,
        epsilon=regime.epsilon,
        learning_rate=regime.alpha,
        record_every=min(record_every, episodes),
    )


def run_course(
    regime: Regime,
    world: str,
    agent: Agent,
    *,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
    record_every: int = RECORD_EVERY,
) -> Course:
    """Let one agent learn in one world under one regime, and measure it."""
    mdp = WORLDS[world]
    history = learn_under(regime, mdp, agent, seeds=seeds, episodes=episodes, record_every=record_every)
    groups = tuple(Group) if len(mdp.decisions) > 1 else (Group.ALL,)
    metrics = {
        (metric, group): group_mean(values, mdp, group).astype(np.float32)
        for metric, values in measure(history).items()
        for group in groups
    }
    return Course(regime, world, agent, history.recorded_at, metrics)


def run_courses(
    progress: Callable[[str], None],
    *,
    regimes: Iterable[Regime] = REGIMES,
    worlds: Iterable[str] = tuple(WORLDS),
    agents: Iterable[Agent] = AGENTS,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
    record_every: int = RECORD_EVERY,
) -> Courses:
    """Run every agent in every world under every regime; `progress` hears of each."""
    courses = []
    for regime, world, agent in product(regimes, worlds, agents):
        courses.append(
            run_course(regime, world, agent, seeds=seeds, episodes=episodes, record_every=record_every)
        )
        progress(f"{agent.label} · {world} · {regime.name}")
    return Courses(courses)


@dataclass(frozen=True)
class Margin:
    """By how much an agent beats Q-learning or double Q-learning, whichever it beats less surely."""

    regime: Regime
    agent: Agent
    metric: Metric
    rate: float
    margin: float
    half_width: float  # of the 95% interval of the margin, paired by seed
    rival: str


def margins(
    courses: Courses, metric: Metric = Metric.GREEDY_CORRECT, agents: Sequence[Agent] = ENSEMBLES
) -> list[Margin]:
    """Return the regime map: the margin of every agent in every regime, averaged over whole runs."""
    found = []
    for regime in courses.regimes:
        for agent in agents:
            rates = courses.get(regime, META_CHAIN, agent).average(metric)
            against = []
            for rival in (QL, DQL):
                difference = over_seeds(rates - courses.get(regime, META_CHAIN, rival).average(metric))
                margin, half_width = float(difference.mean), float(difference.half_width)
                against.append(
                    Margin(regime, agent, metric, float(rates.mean()), margin, half_width, rival.label)
                )
            found.append(min(against, key=lambda cell: cell.margin - cell.half_width))
    return found
