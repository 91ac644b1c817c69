"""The agents that keep tables: what each one remembers, and the rule it bootstraps by."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from ebql.errors import unknown_name, whole_number
from ebql.tabular.rules import Rule


class Turn(IntEnum):
    """Which member learns from a step, as a number that compiled code can switch on."""

    RANDOM = 0
    ALTERNATE = 1


@dataclass(frozen=True)
class Agent:
    """An ensemble of tables, the rule they bootstrap by, and whose turn it is to learn.

    All agents act ε-greedily on the mean of their members.
    """

    label: str
    ensemble_size: int
    rule: Rule
    turn: Turn = Turn.RANDOM


def QLearning() -> Agent:  # noqa: N802 - agents are named as in the literature
    """Watkins' Q-learning: one table that both selects and evaluates; it overestimates."""
    return Agent("QL", 1, Rule.MAXIMUM)


def DoubleQLearning(turn: Literal["random", "alternate"] = "random") -> Agent:  # noqa: N802
    """Van Hasselt's double Q-learning: one table selects, the other evaluates; it underestimates.

    `turn` says which table learns: either at random, as in van Hasselt (2010), or each at every other
    step, as in the paper's appendix. Alternation makes what a table sees depend on the parity of the time
    step, which a world of short episodes can lock in.
    """
    if turn not in ("random", "alternate"):
        raise unknown_name("turn", turn, ("random", "alternate"))
    return Agent("DQL", 2, Rule.ENSEMBLE, Turn[turn.upper()])


def EBQL(ensemble_size: int = 10) -> Agent:  # noqa: N802
    """Ensemble bootstrapped Q-learning: one of K tables selects, the other K - 1 evaluate together."""
    ensemble_size = whole_number("EBQL's ensemble size", ensemble_size, 2)
    return Agent(f"EBQL {ensemble_size}", ensemble_size, Rule.ENSEMBLE)
