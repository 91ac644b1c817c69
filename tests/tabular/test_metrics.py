from dataclasses import replace

import numpy as np
import pytest

from ebql.environments import bandit, meta_chain
from ebql.tabular import EBQL, Group, Metric, QLearning, group_mean, inverse_visits, learn, linear, measure


def history_with(values, epsilons):
    """A history of one seed and one record with the given values of the tracked states."""
    world = meta_chain([-0.5, 0.5])
    history = learn(world, QLearning(), episodes=1)
    return replace(history, decision_values=np.array([[values]]), decision_epsilons=np.array([[epsilons]]))


def test_metrics_by_hand():
    # Chain -0.5: safe (action 1, value 0) is optimal; risky is greedy. Chain +0.5: a tie.
    measured = measure(history_with([[0.3, 0.1], [0.2, 0.2]], [0.2, 1.0]))
    expected = {
        Metric.GREEDY_CORRECT: [0.0, 0.5],
        Metric.BEHAVIOUR_CORRECT: [0.2 * 0.5, 0.5],
        Metric.BIAS_OPTIMAL: [0.1 - 0.0, 0.2 - 0.5],
        Metric.BIAS_RISKY: [0.3 + 0.5, 0.2 - 0.5],
        Metric.BIAS_MAX: [0.3 - 0.0, 0.2 - 0.5],
    }
    assert set(measured) == set(Metric)
    for metric, values in expected.items():
        np.testing.assert_allclose(measured[metric][0, 0], values, atol=1e-12, err_msg=metric)


def test_behaviour_is_unknown_for_an_agent_that_does_not_act_on_its_mean():
    history = learn(meta_chain(), EBQL(3).exploring("thompson"), episodes=5)
    measured = measure(history)
    assert np.isnan(measured[Metric.BEHAVIOUR_CORRECT]).all()
    assert np.isfinite(measured[Metric.GREEDY_CORRECT]).all()


def test_groups_go_by_the_sign_of_the_mean():
    world = meta_chain([-0.5, 0.5, 0.7])
    values = np.array([[[1.0, 10.0, 20.0]]])
    assert group_mean(values, world, Group.ALL) == pytest.approx(31 / 3)
    assert group_mean(values, world, Group.NEGATIVE) == 1.0
    assert group_mean(values, world, Group.POSITIVE) == 15.0


def test_epsilon_is_that_of_the_next_visit():
    history = learn(meta_chain([0.5]), QLearning(), episodes=8, epsilon=inverse_visits(0.5))
    np.testing.assert_allclose(history.decision_epsilons[0, :, 0], 1 / np.sqrt(np.arange(2, 10)))


def test_epsilon_of_a_schedule_is_that_of_the_next_episode():
    history = learn(meta_chain([0.5]), QLearning(), episodes=5, epsilon=linear(1.0, 0.0, 5))
    np.testing.assert_allclose(history.decision_epsilons[0, :, 0], [0.8, 0.6, 0.4, 0.2, 0.2])


def test_an_empty_group_is_refused():
    with pytest.raises(ValueError, match="no decision in the group 'negative'"):
        group_mean(np.zeros((1, 1, 1)), meta_chain([0.5]), Group.NEGATIVE)


def test_a_world_without_decisions_has_no_metrics():
    with pytest.raises(TypeError, match="decisions"):
        measure(learn(bandit([0.0]), QLearning(), episodes=1))


def test_the_signs_of_bias_under_uniform_behaviour():
    """Q-learning overestimates; ensembles are unbiased, because all actions of B are equal and 0 is exact."""
    bias = {}
    for agent in (QLearning(), EBQL(2), EBQL(10)):
        history = learn(meta_chain([0.0]), agent, episodes=2000, seeds=100, epsilon=1.0, record_every=2000)
        values = measure(history)[Metric.BIAS_RISKY][:, -1, 0]
        bias[agent.label] = values.mean(), 2 * values.std(ddof=1) / 10
    assert bias["QL"][0] - bias["QL"][1] > 0
    assert bias["EBQL 2"][0] + bias["EBQL 2"][1] < bias["QL"][0]
    for label in ("EBQL 2", "EBQL 10"):
        mean, two_errors = bias[label]
        assert abs(mean) < 2 * two_errors
        assert mean + two_errors < bias["QL"][0] / 2
