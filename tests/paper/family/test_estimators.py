import numpy as np
import pytest

from ebql.estimators import MEMBER_RULES, Interval
from ebql.paper.family.estimators import (
    GRID,
    METHODS,
    EstimatorPoint,
    World,
    dominated,
    errors_of,
    estimators_table,
    n_worlds,
    run_estimators,
    worlds,
)

EXACT = [method for method in METHODS if method.exact is not None]


@pytest.mark.parametrize("method", EXACT, ids=lambda method: method.label)
def test_exact_errors_are_those_of_the_simulated_rule(method):
    """The two share nothing: one is an integral, the other the rule of `MEMBER_RULES` on samples."""
    world = World(gap=0.15, arms=4)
    exact = errors_of(method, world, replications=0, seed=0)
    simulated = errors_of(method, world, replications=10_000, seed=3, simulated=True)
    for known, measured in zip(exact, simulated, strict=True):
        margin = (measured.high - measured.low) / 2
        assert abs(known.value - measured.value) < 2.5 * margin  # 5 standard errors
        assert known.low == known.value == known.high


def test_every_rule_of_members_is_on_the_map():
    """`mean-maximum` is the single estimator of all samples."""
    assert {method.rule for method in METHODS} == MEMBER_RULES.keys() - {"mean-maximum"}
    assert len({method.label for method in METHODS}) == len(METHODS)


def test_each_axis_varies_alone_and_members_share_the_samples_equally():
    for axis, world in worlds():
        changed = {name for name in World._fields if getattr(world, name) != getattr(World(), name)}
        assert changed <= {axis}
        assert all(world.samples % method.members == 0 for method in METHODS)
    assert len(worlds()) == sum(len(values) for values in GRID.values()) == n_worlds() + 3


def test_a_point_for_each_method_and_world_is_made_and_written():
    heard = []
    points = run_estimators(heard.append, replications=10)
    assert len(heard) == len(METHODS)
    table = estimators_table(points)
    assert len(table.rows) == len(METHODS) * len(worlds())
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_a_method_is_dominated_if_one_other_is_better_in_both():
    def point(number, bias, mse, width=0.0):
        intervals = (Interval(value, value - width, value + width) for value in (bias, 0.1, mse))
        return EstimatorPoint("gap", World(), METHODS[number], *intervals)

    best, biased, noisy = point(0, 0.1, 0.1), point(1, -0.5, 0.05), point(2, 0.2, 0.3)
    counts = dominated([best, biased, noisy])
    assert [counts[METHODS[n].label] for n in range(3)] == [0, 0, 1]
    # An interval that reaches the other's bias is no proof, and neither is one that includes zero.
    unsure = point(2, 0.2, 0.3, width=0.15)
    assert dominated([best, unsure])[METHODS[2].label] == 0
    assert dominated([point(0, 0.0, 0.1), noisy])[METHODS[2].label] == 1


def test_errors_shrink_with_samples_for_exact_methods():
    for method in EXACT:
        few, many = (
            errors_of(method, World(samples=n), replications=0, seed=0).variance.value for n in (60, 960)
        )
        assert many < few, method.label
        assert np.isfinite(few)
