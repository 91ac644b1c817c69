"""Exploring with the ensemble, and whether EBQL's coupled update spoils what exploration wants.

Exploration by disagreement wants members that err apart; EBQL's update lets each learn from the others'
values. Coupled members are set against members that never look at each other (each its own maximum, each
step given to one at random, exactly as in EBQL), under the same three ways to act and no ε.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from ebql.environments import meta_chain
from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import ALPHAS
from ebql.paper.tables import Table
from ebql.tabular import EBQL, Agent, Metric, learn, measure
from ebql.tabular.rules import Rule

Progress = Callable[[str], None]

MEMBERS = 10
COUPLED = EBQL(MEMBERS)
APART = Agent(f"Apart {MEMBERS}", MEMBERS, Rule.MAXIMUM)
UCB_WIDTH = 1.0
# How to act, and the ε on top: acting greedily on the mean explores by ε alone.
Way = Literal["mean", "ucb", "thompson"]
WAYS: tuple[tuple[Way, float], ...] = (("mean", 0.1), ("mean", 0.0), ("ucb", 0.0), ("thompson", 0.0))


@dataclass(frozen=True)
class Explored:
    """How one way to act served one ensemble: means over seeds with half-widths of 95% intervals."""

    agent: Agent
    way: Way
    epsilon: float
    rate: float  # greedy correct-action rate over the whole run
    rate_half_width: float
    earned: float  # mean return an episode
    earned_half_width: float
    spread: float  # standard deviation over members of the risky action's value, at the end
    spread_half_width: float


def run_exploration(progress: Progress, *, seeds: int, episodes: int) -> list[Explored]:
    """Let coupled and uncoupled members explore the Meta-Chain in every way; `progress` hears of each."""
    world = meta_chain()
    states = [decision.state for decision in world.decisions]
    risky = [decision.risky_action for decision in world.decisions]
    found = []
    for agent, (way, epsilon) in product((COUPLED, APART), WAYS):
        acting = agent.exploring(way, UCB_WIDTH)
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
        earned = over_seeds(history.returns.mean(1))
        spread = over_seeds(np.asarray(history.tables[:, :, states, risky].std(1).mean(-1)))
        numbers = [float(number) for estimate in (rate, earned, spread) for number in estimate]
        found.append(Explored(agent, way, epsilon, *numbers))
        progress(f"{acting.label} · ε {epsilon:g}")
    return found


def exploration_table(found: list[Explored]) -> Table:
    """One row for each ensemble and way to act."""
    names = ("rate", "rate_interval", "return", "return_interval", "spread", "spread_interval")
    return Table(
        ("members", "way", "epsilon", *names),
        tuple(
            (
                "coupled (EBQL)" if e.agent == COUPLED else "apart",
                e.way,
                e.epsilon,
                e.rate,
                e.rate_half_width,
                e.earned,
                e.earned_half_width,
                e.spread,
                e.spread_half_width,
            )
            for e in found
        ),
    )
