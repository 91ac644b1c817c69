import numpy as np
import pytest

from ebql.estimators import (
    MEMBER_RULES,
    apply_rule,
    error_intervals,
    exact_moments,
    order_moments,
    single_moments,
)
from ebql.lab.pages.rules import ROTATED, Members, RuleSimulation, exact_rule, rules

MEANS = np.array([0.0, -0.3, -0.3, -0.3])
EVEN, UNEVEN = Members(MEANS, 1.0, 20, 5), Members(MEANS, 1.0, 22, 5)
BY_KEY = {rule.key: rule for rule in rules(5)}


def test_every_rule_of_the_package_is_there():
    assert {*BY_KEY, "ensemble-bootstrap"} == {*MEMBER_RULES, ROTATED}


@pytest.mark.parametrize("k", [2, 3, 50])
def test_every_rule_has_a_parameter_that_fits_any_ensemble(k):
    at = Members(MEANS, 1.0, 50, k)
    simulation = RuleSimulation(at, np.random.default_rng(0))
    simulation.add(20)
    told = simulation.told()
    for rule in rules(k):
        assert (exact_rule(rule, at) is None) == (rule.key in told)


def test_exact_rules_are_those_of_known_estimators():
    found = {key: exact_rule(rule, EVEN) for key, rule in BY_KEY.items()}
    assert found["mean-maximum"].mse == pytest.approx(single_moments(MEANS, 1.0, 20).mse)
    assert found["q-learning"].bias == pytest.approx(single_moments(MEANS, 1.0, 4).bias)
    assert found["split"].mse == pytest.approx(exact_moments(MEANS, 1.0, 20, 8).mse)  # 2 of 5 members
    assert found["maxmin"].bias == order_moments(MEANS, 0.5, 5, 1).bias
    assert found["subset-minimum"].bias == order_moments(MEANS, 0.5, 2, 1).bias
    assert found["order"].bias == order_moments(MEANS, 0.5, 5, 2).bias
    assert found["robust-mean"].bias == pytest.approx(single_moments(MEANS, 1.0, 20).bias - 0.1)


def test_the_smallest_of_unequal_members_is_not_called_exact():
    assert UNEVEN.errors.tolist() == [5**-0.5, 5**-0.5, 0.5, 0.5, 0.5]
    assert exact_rule(BY_KEY["maxmin"], UNEVEN) is None
    assert exact_rule(BY_KEY["subset-minimum"], UNEVEN) is not None  # the first two are equal


@pytest.mark.parametrize("at", [EVEN, UNEVEN])
def test_exact_numbers_agree_with_a_simulation(at):
    members = at.draw(np.random.default_rng(1), 40_000)
    for rule in BY_KEY.values():
        exact = exact_rule(rule, at)
        if exact is not None:
            bias, variance, _ = error_intervals(apply_rule(rule.key, members, 0, rule.parameter), 0.9999)
            assert bias.low < exact.bias < bias.high, rule
            assert variance.low < exact.variance < variance.high, rule
            assert exact.selection.sum() == pytest.approx(1)


def test_simulated_numbers_are_the_rules_own_with_their_intervals():
    simulation = RuleSimulation(EVEN, np.random.default_rng(7))
    simulation.add(300)
    simulation.add(200)
    told = simulation.told()
    rng = np.random.default_rng(7)
    members = np.concatenate([EVEN.draw(rng, 300), EVEN.draw(rng, 200)])
    expected = error_intervals(apply_rule("clipped-double", members))
    assert told["clipped-double"]["bias"] == pytest.approx(expected.bias)
    assert told["clipped-double"]["mse"] == pytest.approx(expected.mse)
    share = np.bincount(members[:, 0].argmax(-1), minlength=4) / 500
    assert told["clipped-double"]["selection"].tolist() == share.tolist()
    turns = np.mean([apply_rule("ensemble-bootstrap", members, k) for k in range(5)], axis=0)
    assert told[ROTATED]["bias"].value == pytest.approx(turns.mean())
    # The weighted estimator is slow: it gets a tenth of the data sets. It averages over arms.
    slow = apply_rule("weighted", np.concatenate([members[:30], members[300:320]]))
    assert told["weighted"]["mse"] == pytest.approx(error_intervals(slow).mse)
    assert told["weighted"]["selection"] is None
