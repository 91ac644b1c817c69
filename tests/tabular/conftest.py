import pytest

from ebql.tabular import (
    EBQL,
    REDQ,
    SUNRISE,
    AveragedQLearning,
    BootstrappedQLearning,
    ClippedDoubleQLearning,
    CrossQLearning,
    DoubleQLearning,
    EnsembleQLearning,
    Maxmin,
    QLearning,
    RandomisedPriors,
    SelfCorrectingQLearning,
    SpeedyQLearning,
    WeightedDoubleQLearning,
)
from ebql.tabular.rules import Rule

AGENTS = [
    QLearning(),
    DoubleQLearning(),
    DoubleQLearning("alternate"),
    EBQL(3),
    EBQL(7),
    EBQL(5, split=3),
    EBQL(6, split="adaptive"),
    EBQL(5).exploring("ucb", 2.0),
    EBQL(5).exploring("thompson"),
    EnsembleQLearning(3),
    AveragedQLearning(4, period=3),
    Maxmin(3),
    WeightedDoubleQLearning(0.5),
    ClippedDoubleQLearning(),
    CrossQLearning(4),
    REDQ(5, 2),
    BootstrappedQLearning(3),
    RandomisedPriors(4, 0.5),
    SUNRISE(4),
    SelfCorrectingQLearning(),
    SpeedyQLearning(),
]


assert {agent.rule for agent in AGENTS} == set(Rule), "tests of every rule need an agent with it"


@pytest.fixture(params=AGENTS, ids=lambda agent: f"{agent.label} {agent.turn.name.lower()}")
def any_agent(request):
    """Every kind of agent, one after the other."""
    return request.param
