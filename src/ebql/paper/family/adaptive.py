"""EBQL's adaptive split against every fixed split and all other methods, in two worlds.

On the Meta-Chain all actions behind the risky one have the same mean, on the graded chain one is better.
"""

from dataclasses import dataclass
from itertools import groupby, product

from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import REGIMES, Regime
from ebql.paper.family.maps import CHAINS, FAMILY, Results
from ebql.paper.family.outcomes import Outcome, Part
from ebql.paper.table import Table
from ebql.tabular import EBQL, Agent

MEMBERS = 6
FIXED: tuple[Agent, ...] = tuple(EBQL(MEMBERS, split=n_index) for n_index in range(1, MEMBERS))
ADAPTIVE = EBQL(MEMBERS, split="adaptive")
RIVALS: tuple[Agent, ...] = (*FIXED, *FAMILY)


@dataclass(frozen=True)
class SplitCell:
    """The results of one agent in one world under one regime, and the lead of the adaptive split over it."""

    regime: Regime
    world: str
    agent: Agent
    rate: float
    squared_error: float  # of the risky action's value, mean over decisions and the whole run
    rate_margin: float  # adaptive minus this split, paired by seed
    rate_half_width: float
    error_margin: float  # this split minus adaptive, paired by seed: positive if adaptive has the lower error
    error_half_width: float
    mean_split: float  # number of selecting members, mean over updates; NaN if it is no split


def split_parts(regimes: tuple[Regime, ...] = REGIMES) -> list[Part]:
    """Return the adaptive split and all its rivals on both chains under every regime."""
    return [Part(*each) for each in product(CHAINS, regimes, (ADAPTIVE, *RIVALS))]


def split_cells(results: Results) -> list[SplitCell]:
    """Compare the adaptive split with all others, in the parts of `split_parts`."""
    cells: list[SplitCell] = []
    for (world, regime), parts in groupby(results, lambda part: (part.world, part.regime)):
        adaptive = results[Part(world, regime, ADAPTIVE)]
        cells += [_against(adaptive, part, results[part]) for part in parts]
    return cells


def splits_table(cells: list[SplitCell]) -> Table:
    """Return one row for each agent in each world and regime, with the margins of the adaptive split."""
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


def _against(adaptive: Outcome, part: Part, outcome: Outcome) -> SplitCell:
    by_rate = over_seeds(adaptive.rate - outcome.rate)
    by_error = over_seeds(outcome.squared_error - adaptive.squared_error)
    is_fixed = part.agent in FIXED
    return SplitCell(
        regime=part.regime,
        world=part.world,
        agent=part.agent,
        rate=float(outcome.rate.mean()),
        squared_error=float(outcome.squared_error.mean()),
        rate_margin=float(by_rate.mean),
        rate_half_width=float(by_rate.half_width),
        error_margin=float(by_error.mean),
        error_half_width=float(by_error.half_width),
        mean_split=FIXED.index(part.agent) + 1.0 if is_fixed else float(outcome.mean_split.mean()),
    )
