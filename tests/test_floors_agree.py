"""The rule is stated once a floor; on the same numbers the floors must agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ebql.estimators import ensemble as ensemble_estimator
from ebql.tabular.rules import ensemble, maximum

torch = pytest.importorskip("torch")
targets = pytest.importorskip("ebql.deep.targets")
distributions = pytest.importorskip("ebql.deep.distributions")

RNG = np.random.default_rng(0)
# Whole numbers of quarters are exact in single precision, so the floors must agree to the last digit but
# for the division by the number of evaluators.
VALUES = st.integers(-400, 400).map(lambda quarters: quarters / 4)


@st.composite
def tables(draw, least_members=2):
    """Values `(K, A)` in which no member sees a tie: tables break ties at random, networks by order."""
    shape = draw(st.tuples(st.integers(least_members, 6), st.integers(1, 5)))
    rows = [draw(hnp.arrays(np.float64, shape[1], elements=VALUES, unique=True)) for _ in range(shape[0])]
    return np.stack(rows)


@settings(deadline=None)  # the first example pays for compiling
@given(tables(), st.floats(-3, 3, width=32), st.floats(0, 1, width=32))
def test_tabular_and_deep_ebql_bootstrap_alike(q, reward, discount):
    values = torch.tensor(q, dtype=torch.float32)[None]
    after = targets.Next(values, values, values, torch.arange(len(q))[None])
    head = distributions.Scalar("huber")
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
