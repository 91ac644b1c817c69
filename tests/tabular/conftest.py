import pytest

from ebql.tabular import (
    EBQL,
    REDQ,
    SUNRISE,
    AdaptiveOrderQLearning,
    AveragedQLearning,
    BootstrappedQLearning,
    CandidateQLearning,
    ClippedDoubleQLearning,
    CrossQLearning,
    DoubleQLearning,
    EnsembleQLearning,
    KEQLearning,
    Maxmin,
    OrderQLearning,
    QLearning,
    RandomisedPriors,
    RobustQLearning,
    SelfCorrectingQLearning,
    SmoothedQLearning,
    SpeedyQLearning,
    TEQLearning,
    WeightedDoubleQLearning,
    WeightedQLearning,
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
    WeightedQLearning(3),
    TEQLearning(3, alpha=0.2),
    KEQLearning(4, scale=0.5),
    OrderQLearning(3, 2),
    AdaptiveOrderQLearning(5),
    RobustQLearning(3, rho=0.5),
    CandidateQLearning(2),
    SmoothedQLearning(0.5),
]


assert {agent.rule for agent in AGENTS} == set(Rule), "tests of every rule need an agent with it"


@pytest.fixture(params=AGENTS, ids=lambda agent: f"{agent.label} {agent.turn.name.lower()}")
def any_agent(request):
    """Every kind of agent, one after the other."""
    return request.param
