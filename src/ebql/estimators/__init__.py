"""Estimators of the largest of several means, and their exact bias, variance and error."""

from ebql.estimators.estimate import MaxEstimate, by_rule, double, ensemble, single, weighted_double
from ebql.estimators.members import MEMBER_RULES, MemberRule, apply_rule
from ebql.estimators.moments import (
    Moments,
    ensemble_moments,
    exact_moments,
    max_moments,
    order_moments,
    single_moments,
    two_phase_moments,
)
from ebql.estimators.selection import selection_probabilities
from ebql.estimators.simulation import Interval, Sampler, Simulated, error_intervals, gaussian, simulate
from ebql.estimators.split import Split, optimal_ensemble_size, optimal_split
from ebql.estimators.winner import Arms, Value, Winner, correct_winner, winner_of

__all__ = [
    "MEMBER_RULES",
    "Arms",
    "Interval",
    "MaxEstimate",
    "MemberRule",
    "Moments",
    "Sampler",
    "Simulated",
    "Split",
    "Value",
    "Winner",
    "apply_rule",
    "by_rule",
    "correct_winner",
    "double",
    "ensemble",
    "ensemble_moments",
    "error_intervals",
    "exact_moments",
    "gaussian",
    "max_moments",
    "optimal_ensemble_size",
    "optimal_split",
    "order_moments",
    "selection_probabilities",
    "simulate",
    "single",
    "single_moments",
    "two_phase_moments",
    "weighted_double",
    "winner_of",
]
