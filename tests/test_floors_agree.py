"""Estimators, tabular and deep agents implement the same rules; on the same numbers they must agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ebql.estimators import ensemble as ensemble_estimator
from ebql.tabular import rules, splits
from ebql.tabular.rules import ensemble, maximum

torch = pytest.importorskip("torch")
targets = pytest.importorskip("ebql.deep.targets")
distributions = pytest.importorskip("ebql.deep.networks.outputs")
splitting = pytest.importorskip("ebql.deep.splitting")

RNG = np.random.default_rng(0)
# Multiples of a quarter are exact in single precision, so results may differ only by the rounding of the
# division by the number of evaluators.
VALUES = st.integers(-400, 400).map(lambda quarters: quarters / 4)


@st.composite
def tables(draw, least_members=2):
    """Values `(K, A)` without ties within a member: tables break ties at random, networks by order."""
    shape = draw(st.tuples(st.integers(least_members, 6), st.integers(1, 5)))
    rows = [draw(hnp.arrays(np.float64, shape[1], elements=VALUES, unique=True)) for _ in range(shape[0])]
    return np.stack(rows)


@settings(deadline=None)  # the first example pays for compiling
@given(tables(), st.floats(-3, 3, width=32), st.floats(0, 1, width=32))
def test_tabular_and_deep_ebql_bootstrap_alike(q, reward, discount):
    values = torch.tensor(q, dtype=torch.float32)[None]
    after = targets.Next(values, values, values, torch.arange(len(q))[None])
    head = distributions.ValueOutput("huber")
    bootstrap = targets.ensemble_bootstrap(after)
    deep = head.target(torch.tensor([reward]), torch.tensor([discount]), bootstrap)
    for member in range(len(q)):
        tabular = reward + discount * ensemble(q, member, RNG)
        assert deep[0, member].item() == pytest.approx(tabular, rel=1e-5, abs=1e-4)


@settings(deadline=None)  # the first example pays for compiling
@given(tables(least_members=1))
def test_tabular_and_deep_q_learning_bootstrap_alike(q):
    values = torch.tensor(q, dtype=torch.float32)[None]
    deep = targets.q_learning(targets.Next(None, values, values, torch.arange(len(q))[None]))
    for member in range(len(q)):
        assert deep[0, member].item() == maximum(q, member, RNG)


@settings(deadline=None)  # the first example pays for compiling
@given(tables())
def test_the_statistics_bootstrap_like_both(q):
    estimate = ensemble_estimator(q.T, len(q)).value
    assert ensemble(q, 0, RNG) == pytest.approx(float(estimate), abs=1e-9)


def deeply(rule, q, *arguments):
    """Return the bootstrap values of a deep rule, (K,), with equal online and target networks."""
    values = torch.tensor(q)[None]
    return rule(targets.Next(values, values, values, torch.arange(len(q))[None]), *arguments)[0].tolist()


ALIKE = {
    "mean_maximum": (targets.mean_maximum, lambda q, k: rules.mean_maximum(q)),
    "maxmin": (targets.maxmin, lambda q, k: rules.maxmin(q)),
    "clipped_double": (targets.clipped_double, lambda q, k: rules.clipped_double(q, k, RNG)),
    "backup_weight": (
        lambda after: targets.backup_weight(after, 0.1),
        lambda q, k: rules.backup_weight(q, k, 0.1, RNG),
    ),
    "subset_minimum": (
        lambda after: targets.subset_minimum(after, torch.arange(after.target.shape[1])),
        lambda q, k: rules.subset_minimum(q, len(q), RNG),
    ),
}


@pytest.mark.parametrize("name", ALIKE)
@settings(deadline=None, max_examples=40)  # the first example pays for compiling
@given(q=tables())
def test_related_methods_bootstrap_alike(name, q):
    deep, tabular = ALIKE[name]
    assert deeply(deep, q) == pytest.approx([tabular(q, k) for k in range(len(q))], abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(tables().filter(lambda q: len(q) == 2), st.floats(0.1, 10))
def test_weighted_double_bootstraps_alike(q, c):
    tabular = [rules.weighted_double(q, k, c, RNG) for k in range(2)]
    assert deeply(targets.weighted_double, q, c) == pytest.approx(tabular, abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(tables(), st.randoms(use_true_random=False))
def test_cross_bootstraps_from_the_same_choices(q, random):
    """The tabular rule draws its evaluators itself; the deep rule gets them as an argument."""
    others = [random.choice([j for j in range(len(q)) if j != k]) for k in range(len(q))]
    deep = deeply(targets.cross, q, torch.tensor([others]))
    for k in range(len(q)):
        possible = {rules.cross(q, k, np.random.default_rng(seed)) for seed in range(60)}
        assert deep[k] in possible


@settings(deadline=None, max_examples=60)
@given(tables(), st.data())
def test_splits_bootstrap_alike(q, data):
    n = data.draw(st.integers(1, len(q) - 1))
    selectors = [(np.arange(n) + k) % len(q) for k in range(len(q))]
    totals = [q[chosen].sum(0) for chosen in selectors]
    if any((np.sort(total)[-2:] == total.max()).sum() > 1 for total in totals):
        return  # tables break ties at random
    tabular = [rules.split(q, k, n, RNG) for k in range(len(q))]
    assert deeply(targets.split, q, torch.tensor([n])) == pytest.approx(tabular, abs=1e-9)


@settings(deadline=None)
@given(st.integers(3, 9), st.integers(1, 5), st.floats(0, 3), st.integers(0, 2**31 - 1))
def test_the_adaptive_split_is_the_same_for_tables_and_networks(n_members, n_actions, scale, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(n_members, n_actions)) + scale * rng.normal(size=n_actions)
    assert splitting.best_split(torch.tensor(q)[None]).item() == splits.best_split(q)
