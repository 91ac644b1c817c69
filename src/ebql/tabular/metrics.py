"""Metrics at the decisions of an MDP: how often the action is correct, and how biased the values are.

Let Q̄(s, a) be the mean of the members (for Maxmin, their minimum) and s a tracked state with n(s) actions.
A* are the optimal actions by the exact Q*, and G = argmax_a Q̄(s, a) are the greedy actions, several if
tied.

greedy_correct
    Probability that a greedy action, ties broken at random, is optimal: |G ∩ A*| / |G|.
behaviour_correct
    The same for the ε-greedy action of the next visit: (1 - ε) |G ∩ A*| / |G| + ε |A*| / n(s). NaN if the
    agent acts on one member or on upper confidence bounds instead of Q̄.
bias_optimal
    Q̄(s, a*) - Q*(s, a*), for an optimal action a*.
bias_risky
    Q̄(s, b) - Q*(s, b), for the risky action b, which leads to the noisy rewards.
bias_max
    max_a Q̄(s, a) - max_a Q*(s, a): the bias of the state's value.

The first two are probabilities; biases have the unit of the reward. All are measured between episodes.
"""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP
from ebql.errors import InputError, InputTypeError
from ebql.tabular.behaviours import Behaviour
from ebql.tabular.learning import History

Floats = NDArray[np.float64]


class Metric(StrEnum):
    """The names of the metrics that `measure` returns.

    The first two are probabilities; the others are in units of the reward.

    >>> [metric.value for metric in Metric]
    ['greedy_correct', 'behaviour_correct', 'bias_optimal', 'bias_risky', 'bias_max']
    """

    GREEDY_CORRECT = "greedy_correct"
    """Probability that a greedy action, ties broken at random, is optimal."""
    BEHAVIOUR_CORRECT = "behaviour_correct"
    """The same for the ε-greedy action of the next visit; NaN if the agent does not act on the mean."""
    BIAS_OPTIMAL = "bias_optimal"
    """The value of an optimal action minus its exact value."""
    BIAS_RISKY = "bias_risky"
    """The value of the risky action, which leads to the noisy rewards, minus its exact value."""
    BIAS_MAX = "bias_max"
    """The largest value minus the largest exact value: the bias of the state's value."""


class Group(StrEnum):
    """The decisions to average over with `group_mean`.

    >>> from ebql.environments import meta_chain
    >>> from ebql.tabular import QLearning, learn
    >>> correct = measure(learn(meta_chain(), QLearning(), episodes=20))[Metric.GREEDY_CORRECT]
    >>> [group_mean(correct, meta_chain(), group).shape for group in Group]  # (seeds, records) each
    [(1, 20), (1, 20), (1, 20)]
    """

    ALL = "all"
    """All decisions."""
    POSITIVE = "positive"
    """Those with a mean above 0, where the risk pays."""
    NEGATIVE = "negative"
    """Those with a mean below 0, where the risk costs."""


def measure(history: History) -> dict[Metric, Floats]:
    """Return every metric, `(seeds, R, D)`, for each record and decision.

    >>> from ebql.environments import chain
    >>> from ebql.tabular import QLearning, learn
    >>> history = learn(chain(-0.1), QLearning(), episodes=200, seeds=50)
    >>> bool(measure(history)[Metric.BIAS_RISKY][:, -1].mean() > 0)  # too high at the end
    True
    """
    world = history.world
    if not isinstance(world, MDP) or not world.decisions:
        raise InputTypeError("Metrics need exact values: pass the history of an MDP with decisions.")
    states = np.array([decision.state for decision in world.decisions])
    risky = np.array([decision.risky_action for decision in world.decisions])
    width = history.decision_values.shape[-1]
    exists = world.exists[states, :width]
    exact = np.where(exists, world.optimal_values(history.discount)[states, :width], -np.inf)
    learnt = np.where(exists, history.decision_values, -np.inf)

    is_optimal = np.isclose(exact, exact.max(-1, keepdims=True), rtol=0, atol=1e-9)
    is_greedy = learnt == learnt.max(-1, keepdims=True)
    greedy_correct = (is_greedy & is_optimal).sum(-1) / is_greedy.sum(-1)
    random_correct = is_optimal.sum(-1) / exists.sum(-1)
    acts_on_mean = history.agent.behaviour == Behaviour.MEAN
    epsilon = history.decision_epsilons if acts_on_mean else np.nan
    optimal = is_optimal.argmax(-1)

    def bias_of(action: NDArray[np.int64]) -> Floats:
        decision = np.arange(len(states))
        difference: Floats = learnt[..., decision, action] - exact[decision, action]
        return difference

    return {
        Metric.GREEDY_CORRECT: greedy_correct,
        Metric.BEHAVIOUR_CORRECT: (1 - epsilon) * greedy_correct + epsilon * random_correct,
        Metric.BIAS_OPTIMAL: bias_of(optimal),
        Metric.BIAS_RISKY: bias_of(risky),
        Metric.BIAS_MAX: learnt.max(-1) - exact.max(-1),
    }


def group_mean(values: Floats, world: MDP, group: Group) -> Floats:
    """Average a metric, `(seeds, R, D)`, over the decisions of a group; return `(seeds, R)`.

    >>> from ebql.environments import chain
    >>> from ebql.tabular import QLearning, learn
    >>> correct = measure(learn(chain(0.1), QLearning(), episodes=20, seeds=3))[Metric.GREEDY_CORRECT]
    >>> group_mean(correct, chain(0.1), Group.ALL).shape  # (seeds, records)
    (3, 20)
    """
    means = np.array([decision.mean for decision in world.decisions])
    members = {
        Group.ALL: np.ones_like(means, dtype=bool),
        Group.POSITIVE: means > 0,
        Group.NEGATIVE: means < 0,
    }
    if not members[group].any():
        raise InputError(f"{world.name} has no decision in the group {group.value!r}.")
    averaged: Floats = values[..., members[group]].mean(-1)
    return averaged
