"""Exploration with an ensemble, and whether EBQL's coupled update harms it.

Exploration by disagreement needs members with different errors, but EBQL's members learn from each other's
values. We compare them with uncoupled members, each of which bootstraps from its own maximum. As in EBQL, a
random member is updated at each step. Both ensembles act by the same rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from ebql.environments import meta_chain
from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import ALPHAS
from ebql.paper.table import Table
from ebql.tabular import EBQL, Agent, Metric, learn, measure
from ebql.tabular.rules import Rule

Progress = Callable[[str], None]

MEMBERS = 10
COUPLED = EBQL(MEMBERS)
UNCOUPLED = Agent(f"Apart {MEMBERS}", MEMBERS, Rule.MAXIMUM)
UCB_WIDTH = 1.0
ActingRule = Literal["mean", "ucb", "thompson"]
BEHAVIOURS: tuple[tuple[ActingRule, float], ...] = (
    ("mean", 0.1),
    ("mean", 0.0),
    ("ucb", 0.0),
    ("thompson", 0.0),
)
"""Pairs of the rule by which the ensemble acts, and ε."""


@dataclass(frozen=True)
class ExplorationResult:
    """The results of one ensemble with one behaviour: means over seeds, half-widths of 95% intervals."""

    agent: Agent
    acting_rule: ActingRule
    epsilon: float
    rate: float  # greedy correct-action rate over the whole run
    rate_half_width: float
    mean_return: float  # per episode
    return_half_width: float
    spread: float  # standard deviation over members of the risky action's final value
    spread_half_width: float


def run_exploration(progress: Progress, *, seeds: int, episodes: int) -> list[ExplorationResult]:
    """Train both ensembles on the Meta-Chain with each behaviour; call `progress` after each."""
    world = meta_chain()
    states = [decision.state for decision in world.decisions]
    risky = [decision.risky_action for decision in world.decisions]
    results = []
    for agent, (acting_rule, epsilon) in product((COUPLED, UNCOUPLED), BEHAVIOURS):
        acting = agent.exploring(acting_rule, UCB_WIDTH)
        history = learn(
            world,
            acting,
            episodes=episodes,
            seeds=seeds,
            epsilon=epsilon,
            learning_rate=ALPHAS["1/n^0.8"],
            record_every=min(50, episodes),
        )
        rate = over_seeds(measure(history)[Metric.GREEDY_CORRECT].mean((1, 2)))
        mean_return = over_seeds(history.returns.mean(1))
        spread = over_seeds(np.asarray(history.tables[:, :, states, risky].std(1).mean(-1)))
        numbers = [float(number) for estimate in (rate, mean_return, spread) for number in estimate]
        results.append(ExplorationResult(agent, acting_rule, epsilon, *numbers))
        progress(f"{acting.label} · ε {epsilon:g}")
    return results


def exploration_table(results: list[ExplorationResult]) -> Table:
    """Return one row for each ensemble and behaviour."""
    names = ("rate", "rate_interval", "return", "return_interval", "spread", "spread_interval")
    return Table(
        ("members", "way", "epsilon", *names),
        tuple(
            (
                "coupled (EBQL)" if e.agent == COUPLED else "apart",
                e.acting_rule,
                e.epsilon,
                e.rate,
                e.rate_half_width,
                e.mean_return,
                e.return_half_width,
                e.spread,
                e.spread_half_width,
            )
            for e in results
        ),
    )
