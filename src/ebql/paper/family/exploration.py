"""Exploration with an ensemble, and whether EBQL's coupled update harms it.

Exploration by disagreement needs members with different errors, but EBQL's members learn from each other's
values. We compare them with uncoupled members, each of which bootstraps from its own maximum, and with all
other methods. As in EBQL, a random member is updated at each step. All ensembles act by the same rules.
"""

from itertools import product
from typing import Literal, NamedTuple

from ebql.estimators.intervals import over_seeds
from ebql.paper.chains.curves import ALPHAS, META_CHAIN, Regime
from ebql.paper.family.maps import FAMILY, Results
from ebql.paper.family.outcomes import Part
from ebql.paper.table import Table
from ebql.tabular import EBQL, Agent, Schedule
from ebql.tabular.rules import Rule

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


class Exploring(NamedTuple):
    """An ensemble that acts by a rule, with probability ε at random."""

    agent: Agent
    acting_rule: ActingRule
    epsilon: float

    @property
    def part(self) -> Part:
        """What is to be learnt for it, on the Meta-Chain."""
        alpha = "1/n^0.8"
        regime = Regime(f"{self.epsilon:g}", Schedule(self.epsilon), alpha, ALPHAS[alpha])
        return Part(META_CHAIN, regime, self.agent.exploring(self.acting_rule, UCB_WIDTH))


# A single table only acts on its values; it has no members that disagree.
EXPLORING = tuple(
    Exploring(agent, acting_rule, epsilon)
    for agent, (acting_rule, epsilon) in product((UNCOUPLED, *FAMILY), BEHAVIOURS)
    if acting_rule == "mean" or agent.learners > 1
)


class ExplorationResult(NamedTuple):
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


def exploration_results(results: Results) -> list[ExplorationResult]:
    """Return the rate, the return and the spread of each of `EXPLORING`."""
    kept = []
    for exploring in EXPLORING:
        outcome = results[exploring.part]
        columns = (outcome.rate, outcome.mean_return, outcome.spread)
        numbers = [float(number) for column in columns for number in over_seeds(column)]
        kept.append(ExplorationResult(*exploring, *numbers))
    return kept


def exploration_table(results: list[ExplorationResult]) -> Table:
    """Return one row for each ensemble and behaviour."""
    names = ("rate", "rate_interval", "return", "return_interval", "spread", "spread_interval")
    rows = tuple((result.agent.label, *result[1:]) for result in results)
    return Table(("agent", "acts_on", "epsilon", *names), rows)
