"""A rule is the same for samples, tables and networks: on the same numbers they must agree.

`ebql.estimators.MEMBER_RULES` defines each rule of a (K, m) matrix. Every such rule has a line in `FLOORS`,
and one test holds its three forms to the same number, for random matrices, masks and ties. Networks
break ties by order, as estimators do. Tables break them at random, so their number must be one that the
estimator gives for some order of the arms.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.estimators import MEMBER_RULES, apply_rule
from ebql.tabular import rules, splits

torch = pytest.importorskip("torch")
targets = pytest.importorskip("ebql.deep.targets")
distributions = pytest.importorskip("ebql.deep.networks.outputs")
splitting = pytest.importorskip("ebql.deep.splitting")

RNG = np.random.default_rng(0)


class Floors(NamedTuple):
    """One rule for tables, `(q, member, parameter)`, and for networks, `(after, parameter)`."""

    table: object
    network: object
    parameter: object = None
    """A function of K that gives the strategy of the parameter; None for a rule without one."""
    table_members: tuple[int, int] = (1, 4)
    """The least and the most members of the rule for tables."""
    drawn: str = ""
    """What a table draws at random: its "other" member, or a "subset" of all."""


def next_members(after, _):
    return (after.members + 1) % after.target.shape[1]


FLOORS = {
    "q-learning": Floors(
        lambda q, k, _: rules.maximum(q, k, RNG), lambda after, _: targets.q_learning(after)
    ),
    "ensemble-bootstrap": Floors(
        lambda q, k, _: rules.ensemble(q, k, RNG), lambda after, _: targets.ensemble_bootstrap(after)
    ),
    "split": Floors(
        lambda q, k, n: rules.split(q, k, n, RNG),
        lambda after, n: targets.split(after, torch.tensor([n])),
        lambda members: st.integers(1, members - 1),
    ),
    "mean-maximum": Floors(
        lambda q, k, _: rules.mean_maximum(q), lambda after, _: targets.mean_maximum(after)
    ),
    "maxmin": Floors(lambda q, k, _: rules.maxmin(q), lambda after, _: targets.maxmin(after)),
    "subset-minimum": Floors(
        lambda q, k, size: rules.subset_minimum(q, size, RNG),
        lambda after, size: targets.subset_minimum(after, torch.arange(size)),
        lambda members: st.integers(1, members),
        drawn="subset",
    ),
    "clipped-double": Floors(
        lambda q, k, _: rules.clipped_double(q, k, RNG), lambda after, _: targets.clipped_double(after)
    ),
    "cross": Floors(
        lambda q, k, _: rules.cross(q, k, RNG),
        lambda after, _: targets.cross(after, next_members(after, _)),
        drawn="other",
    ),
    "weighted-double": Floors(
        lambda q, k, c: rules.weighted_double(q, k, c, RNG),
        targets.weighted_double,
        lambda members: st.floats(0.1, 10),
        table_members=(2, 2),
    ),
    "weighted": Floors(lambda q, k, _: rules.weighted(q), lambda after, _: targets.weighted(after)),
    "t-estimator": Floors(
        lambda q, k, alpha: rules.t_estimator(q, k, alpha, RNG),
        targets.t_estimator,
        lambda members: st.floats(0.01, 0.5),
    ),
    "k-estimator": Floors(
        lambda q, k, scale: rules.k_estimator(q, k, scale, RNG),
        targets.k_estimator,
        lambda members: st.floats(0.1, 10),
    ),
    "order": Floors(
        lambda q, k, index: rules.order(q, index), targets.order, lambda members: st.integers(1, members)
    ),
    "adaptive-order": Floors(
        lambda q, k, _: rules.adaptive_order(q), lambda after, _: targets.adaptive_order(after)
    ),
    "robust-mean": Floors(
        lambda q, k, rho: rules.robust_mean(q, rho), targets.robust_mean, lambda members: st.floats(0, 9)
    ),
    "candidates": Floors(
        lambda q, k, size: rules.candidates(q, k, size, RNG),
        targets.candidates,
        lambda members: st.integers(1, 5),
        table_members=(2, 2),
    ),
    "smoothed": Floors(
        lambda q, k, tau: rules.smoothed(q, k, tau), targets.smoothed, lambda members: st.floats(0, 1)
    ),
}


@st.composite
def matrices(draw, least_members):
    """Members' values (K, m): continuous ones, or a few whole numbers, which often tie."""
    shape = draw(st.integers(max(1, least_members), 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**31 - 1)))
    return rng.integers(-2, 3, shape).astype(float) if draw(st.booleans()) else rng.normal(size=shape)


def deeply(floors, q, parameter, legal=None):
    """Return the values of a network's rule, (K,), with equal online and target networks."""
    values = torch.tensor(q)[None]
    mask = None if legal is None else torch.tensor(legal)[None]
    after = targets.Next(values, values, values, torch.arange(len(q))[None], mask)
    return floors.network(after, parameter)[0].tolist()


def with_decoys(draw, q):
    """Return a wider matrix in which some actions are illegal and have absurd values, and its mask."""
    legal = np.array(draw(st.permutations([True] * q.shape[1] + [False] * draw(st.integers(0, 2)))))
    wide = np.full((len(q), len(legal)), draw(st.sampled_from([1e6, -1e6])))
    wide[:, legal] = q
    return wide, legal


def possible(name, q, member, parameter):
    """Return all values that ties and draws allow: the estimator's for every order of arms and members."""
    drawn, others = FLOORS[name].drawn, [k for k in range(len(q)) if k != member]
    orders = [[member, *rest] for rest in (permutations(others) if drawn == "other" else ())]
    orders += map(list, permutations(range(len(q)))) if drawn == "subset" else ()
    orders = orders or [list(np.roll(np.arange(len(q)), -member))]
    arms = list(permutations(range(q.shape[1])))
    stacked = np.array([q[np.ix_(order, columns)] for order in orders for columns in arms])
    return apply_rule(name, stacked, 0, parameter)


@pytest.mark.parametrize("name", FLOORS)
@settings(deadline=None, max_examples=60)  # the first example pays for compiling
@given(st.data())
def test_samples_tables_and_networks_give_the_same_number(name, data):
    floors = FLOORS[name]
    q = data.draw(matrices(MEMBER_RULES[name].least_members))
    parameter = None if floors.parameter is None else data.draw(floors.parameter(len(q)))
    network = deeply(floors, q, parameter)
    wide, legal = with_decoys(data.draw, q)
    assert deeply(floors, wide, parameter, legal) == pytest.approx(network, abs=1e-6)
    for member in range(len(q)):
        value = float(apply_rule(name, q, 0 if floors.drawn == "subset" else member, parameter))
        assert network[member] == pytest.approx(value, abs=1e-6)
        least, most = floors.table_members
        # If all of the member's values tie, a table's best and worst arm may differ: no order says so.
        unclear = name == "weighted-double" and np.ptp(q[member]) == 0
        if least <= len(q) <= most and not unclear:
            table = floors.table(q, member, parameter)
            assert np.abs(possible(name, q, member, parameter) - table).min() < 1e-6


def test_the_rules_have_the_names_that_networks_have_for_them():
    assert FLOORS.keys() == MEMBER_RULES.keys()
    # Of one network's two copies; with weights of rows, which change no value; with a size that is steered.
    assert targets.RULES.keys() - MEMBER_RULES.keys() == {"double-q", "sunrise", "adaeq"}


@settings(deadline=None, max_examples=40)
@given(matrices(2), st.floats(-3, 3), st.floats(0, 1))
def test_tabular_and_deep_targets_are_alike(q, reward, discount):
    values = torch.tensor(q)[None]
    after = targets.Next(values, values, values, torch.arange(len(q))[None])
    head = distributions.ValueOutput("huber")
    rewards, discounts = torch.tensor([[reward], [discount]], dtype=torch.float64)
    deep = head.target(rewards, discounts, targets.maxmin(after))
    assert deep[0, 0].item() == pytest.approx(reward + discount * rules.maxmin(q), abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(matrices(2))
def test_sunrise_weighs_alike(q):
    if any((row == row.max()).sum() > 1 for row in q):
        return  # tables break ties at random
    values = torch.tensor(q)[None]
    after = targets.Next(values, values, values, torch.arange(len(q))[None])
    tabular = [rules.backup_weight(q, k, 0.1, RNG) for k in range(len(q))]
    assert targets.backup_weight(after, 0.1)[0].tolist() == pytest.approx(tabular, abs=1e-9)


@settings(deadline=None)
@given(st.integers(3, 9), st.integers(1, 5), st.floats(0, 3), st.integers(0, 2**31 - 1))
def test_the_adaptive_split_is_the_same_for_tables_and_networks(n_members, n_actions, scale, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(n_members, n_actions)) + scale * rng.normal(size=n_actions)
    assert splitting.best_split(torch.tensor(q)[None]).item() == splits.best_split(q)
