"""Tabular agents: Q-learning, double Q-learning, EBQL and related methods."""

from ebql.tabular.agents import (
    EBQL,
    REDQ,
    SUNRISE,
    Agent,
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
from ebql.tabular.learning import History, learn
from ebql.tabular.metrics import Group, Metric, group_mean, measure
from ebql.tabular.schedules import Schedule, inverse_visits, linear

__all__ = [
    "EBQL",
    "REDQ",
    "SUNRISE",
    "Agent",
    "AveragedQLearning",
    "BootstrappedQLearning",
    "ClippedDoubleQLearning",
    "CrossQLearning",
    "DoubleQLearning",
    "EnsembleQLearning",
    "Group",
    "History",
    "Maxmin",
    "Metric",
    "QLearning",
    "RandomisedPriors",
    "Schedule",
    "SelfCorrectingQLearning",
    "SpeedyQLearning",
    "WeightedDoubleQLearning",
    "group_mean",
    "inverse_visits",
    "learn",
    "linear",
    "measure",
]
