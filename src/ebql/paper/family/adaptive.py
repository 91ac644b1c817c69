"""EBQL's adaptive split against every fixed split, with arms of equal and of different means."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP, meta_chain
from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import META_CHAIN, REGIMES, Regime, learn_under
from ebql.paper.table import Table
from ebql.tabular import EBQL, Agent, Metric, measure

Progress = Callable[[str], None]
Floats = NDArray[np.float64]

MEMBERS = 6
FIXED: tuple[Agent, ...] = tuple(EBQL(MEMBERS, split=n_index) for n_index in range(1, MEMBERS))
ADAPTIVE = EBQL(MEMBERS, split="adaptive")
RECORD_EVERY = 50

# On the Meta-Chain all actions behind the risky one have the same mean, so selecting the wrong one costs
# nothing. On this chain one action is better. There are fewer actions, so that each is tried often enough.
GRADED_CHAIN = "graded meta-chain"
GRADED_ACTIONS = 4
GAP = 1.0


def graded_meta_chain(gap: float = GAP, actions: int = GRADED_ACTIONS) -> MDP:
    """Return the Meta-Chain with one best action in each state B: the means of the others are `gap` lower."""
    world = meta_chain(actions=actions)
    means = world.reward_means.copy()
    for decision in world.decisions:
        means[decision.state + 1, 1:] -= gap  # B is the state after A; its first action keeps its mean
    return replace(world, reward_means=means, name=GRADED_CHAIN)


SPLIT_WORLDS: dict[str, MDP] = {META_CHAIN: meta_chain(), GRADED_CHAIN: graded_meta_chain()}


@dataclass(frozen=True)
class SplitCell:
    """The results of one split in one world under one regime, and the lead of the adaptive split over it."""

    regime: Regime
    world: str
    agent: Agent
    rate: float
    squared_error: float  # of the risky action's value, mean over decisions and the whole run
    rate_margin: float  # adaptive minus this split, paired by seed
    rate_half_width: float
    error_margin: float  # this split minus adaptive, paired by seed: positive if adaptive has the lower error
    error_half_width: float
    mean_split: float  # number of selecting members, mean over updates


def run_splits(
    progress: Progress,
    *,
    regimes: tuple[Regime, ...] = REGIMES,
    seeds: int,
    episodes: int,
) -> list[SplitCell]:
    """Train EBQL with each fixed split and the adaptive one in every regime; call `progress` after each."""
    cells = []
    for world, regime in product(SPLIT_WORLDS, regimes):
        outcomes = []
        for agent in (ADAPTIVE, *FIXED):
            outcomes.append(_outcome(regime, world, agent, seeds, episodes))
            progress(f"{agent.label} · {world} · {regime.name}")
        cells += _against_adaptive(regime, world, outcomes)
    return cells


def splits_table(cells: list[SplitCell]) -> Table:
    """Return one row for each split in each world and regime, with the margins of the adaptive split."""
    return Table(
        (
            "world",
            "regime",
            "agent",
            "mean_split",
            "rate",
            "squared_error",
            "adaptive_rate_margin",
            "adaptive_rate_interval",
            "adaptive_error_margin",
            "adaptive_error_interval",
        ),
        tuple(
            (
                c.world,
                c.regime.name,
                c.agent.label,
                c.mean_split,
                c.rate,
                c.squared_error,
                c.rate_margin,
                c.rate_half_width,
                c.error_margin,
                c.error_half_width,
            )
            for c in cells
        ),
    )


class _Outcome(NamedTuple):
    """The results of one split for each seed."""

    agent: Agent
    rate: Floats  # (seeds,)
    squared_error: Floats  # (seeds,)
    mean_split: float


def _outcome(regime: Regime, world: str, agent: Agent, seeds: int, episodes: int) -> _Outcome:
    mdp = SPLIT_WORLDS[world]
    history = learn_under(regime, mdp, agent, seeds=seeds, episodes=episodes, record_every=RECORD_EVERY)
    metrics = measure(history)
    rate = metrics[Metric.GREEDY_CORRECT].mean((1, 2))
    squared_error = (metrics[Metric.BIAS_RISKY] ** 2).mean((1, 2))
    adaptive = agent == ADAPTIVE
    mean_split = float(history.mean_splits.mean()) if adaptive else FIXED.index(agent) + 1.0
    return _Outcome(agent, rate, squared_error, mean_split)


def _against_adaptive(regime: Regime, world: str, outcomes: list[_Outcome]) -> list[SplitCell]:
    adaptive = outcomes[0]
    cells = []
    for outcome in outcomes:
        by_rate = over_seeds(adaptive.rate - outcome.rate)
        by_error = over_seeds(outcome.squared_error - adaptive.squared_error)
        cells.append(
            SplitCell(
                regime=regime,
                world=world,
                agent=outcome.agent,
                rate=float(outcome.rate.mean()),
                squared_error=float(outcome.squared_error.mean()),
                rate_margin=float(by_rate.mean),
                rate_half_width=float(by_rate.half_width),
                error_margin=float(by_error.mean),
                error_half_width=float(by_error.half_width),
                mean_split=outcome.mean_split,
            )
        )
    return cells
