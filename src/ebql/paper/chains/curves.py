"""Learning curves of tabular agents on the chains: the data of figures 3 and 5 and of the regime map.

The paper does not say how its agents explored or broke ties, and its claims depend on the exploration. So
every figure is made in each of twelve regimes: four exploration schedules times three step sizes.
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
"""Episodes between two points of a learning curve."""

# Double Q-learning alternates between its tables, as in the paper's appendix.
QL, DQL = QLearning(), DoubleQLearning("alternate")
ENSEMBLES: tuple[Agent, ...] = tuple(EBQL(size) for size in (3, 7, 10, 15, 25))
AGENTS: tuple[Agent, ...] = (QL, DQL, *ENSEMBLES)

NEGATIVE_CHAIN, POSITIVE_CHAIN, META_CHAIN = "mean -0.2", "mean +0.2", "meta-chain"
# Not in the paper. All exact values are 0 here, so tables initialised with zeros are unbiased, and any bias
# comes from the update rule.
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
    """An exploration schedule (ε) with a step-size schedule (α)."""

    epsilon_name: str
    epsilon: Schedule
    alpha_name: str
    alpha: Schedule

    @property
    def name(self) -> str:
        """The name in figures and tables."""
        return f"ε = {self.epsilon_name}, α = {self.alpha_name}"

    @property
    def slug(self) -> str:
        """The name in file names."""
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
class LearningCurve:
    """All metrics of one agent in one world under one regime, at R points in time."""

    regime: Regime
    world: str
    agent: Agent
    episodes: NDArray[np.int64]  # (R,), episodes completed
    metrics: dict[tuple[Metric, Group], NDArray[np.float32]]  # each (seeds, R)

    def over_seeds(self, metric: Metric, group: Group = Group.ALL) -> MeanOverSeeds:
        """Return the mean over seeds and its 95% interval at each point, arrays (R,)."""
        return over_seeds(self.metrics[metric, group].astype(np.float64))

    def average(self, metric: Metric, group: Group = Group.ALL) -> Floats:
        """Return the metric of each seed averaged over the whole run, (seeds,)."""
        averaged: Floats = self.metrics[metric, group].mean(1, dtype=np.float64)
        return averaged

    def final(self, metric: Metric, group: Group = Group.ALL) -> Floats:
        """Return the metric of each seed after the last episode, (seeds,)."""
        return self.metrics[metric, group][:, -1].astype(np.float64)


class LearningCurves:
    """Learning curves, looked up by regime, world and agent."""

    def __init__(self, curves: Iterable[LearningCurve]) -> None:
        """Index the learning curves."""
        self.all = tuple(curves)
        self._by_key = {(c.regime.name, c.world, c.agent): c for c in self.all}
        self.regimes = tuple({c.regime.name: c.regime for c in self.all}.values())

    def get(self, regime: Regime, world: str, agent: Agent) -> LearningCurve:
        """Return one learning curve."""
        return self._by_key[regime.name, world, agent]


def learn_under(
    regime: Regime, mdp: MDP, agent: Agent, *, seeds: int, episodes: int, record_every: int
) -> History:
    """Train one agent under one regime, with γ = 1 and tables of zeros (plus priors, if it has any)."""
    return learn(
        mdp,
        agent,
        episodes=episodes,
        seeds=seeds,
        epsilon=regime.epsilon,
        learning_rate=regime.alpha,
        record_every=min(record_every, episodes),
    )


def run_learning_curve(
    regime: Regime,
    world: str,
    agent: Agent,
    *,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
    record_every: int = RECORD_EVERY,
) -> LearningCurve:
    """Train one agent in one world under one regime, and measure it."""
    mdp = WORLDS[world]
    history = learn_under(regime, mdp, agent, seeds=seeds, episodes=episodes, record_every=record_every)
    groups = tuple(Group) if len(mdp.decisions) > 1 else (Group.ALL,)
    metrics = {
        (metric, group): group_mean(values, mdp, group).astype(np.float32)
        for metric, values in measure(history).items()
        for group in groups
    }
    return LearningCurve(regime, world, agent, history.recorded_at, metrics)


def run_learning_curves(
    progress: Callable[[str], None],
    *,
    regimes: Iterable[Regime] = REGIMES,
    worlds: Iterable[str] = tuple(WORLDS),
    agents: Iterable[Agent] = AGENTS,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
    record_every: int = RECORD_EVERY,
) -> LearningCurves:
    """Train every agent in every world under every regime; call `progress` after each."""
    curves = []
    for regime, world, agent in product(regimes, worlds, agents):
        curves.append(
            run_learning_curve(
                regime, world, agent, seeds=seeds, episodes=episodes, record_every=record_every
            )
        )
        progress(f"{agent.label} · {world} · {regime.name}")
    return LearningCurves(curves)


@dataclass(frozen=True)
class Margin:
    """An agent's lead in correct-action rate over Q-learning or double Q-learning.

    The rival is the one of the two over which the lead has the smaller lower bound.
    """

    regime: Regime
    agent: Agent
    metric: Metric
    rate: float
    margin: float
    half_width: float  # of the 95% interval of the margin, paired by seed
    rival: str


def margins(
    curves: LearningCurves, metric: Metric = Metric.GREEDY_CORRECT, agents: Sequence[Agent] = ENSEMBLES
) -> list[Margin]:
    """Return the regime map: the margin of every agent in every regime, averaged over whole runs."""
    cells = []
    for regime, agent in product(curves.regimes, agents):
        rates, *rivals = (curves.get(regime, META_CHAIN, each).average(metric) for each in (agent, QL, DQL))
        cells.append(least_margin(regime, agent, metric, rates, rivals))
    return cells


def least_margin(
    regime: Regime, agent: Agent, metric: Metric, rates: Floats, rivals: Sequence[Floats]
) -> Margin:
    """Return the agent's margin over the one of QL and DQL that it leads less surely; rates are (seeds,)."""
    over_rivals = []
    for rival, others in zip((QL, DQL), rivals, strict=True):
        difference = over_seeds(rates - others)
        margin, half_width = float(difference.mean), float(difference.half_width)
        over_rivals.append(
            Margin(regime, agent, metric, float(rates.mean()), margin, half_width, rival.label)
        )
    return min(over_rivals, key=lambda cell: cell.margin - cell.half_width)
