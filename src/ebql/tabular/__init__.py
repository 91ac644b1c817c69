"""The tables: Q-learning, double Q-learning and ensemble bootstrapped Q-learning."""

from ebql.tabular.agents import EBQL, Agent, DoubleQLearning, QLearning
from ebql.tabular.learning import History, learn
from ebql.tabular.metrics import Group, Metric, group_mean, measure
from ebql.tabular.schedules import Schedule, inverse_visits, linear

__all__ = [
    "EBQL",
    "Agent",
    "DoubleQLearning",
    "Group",
    "History",
    "Metric",
    "QLearning",
    "Schedule",
    "group_mean",
    "inverse_visits",
    "learn",
    "linear",
    "measure",
]
