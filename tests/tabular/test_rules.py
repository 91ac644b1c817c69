import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ebql.estimators import ensemble as ensemble_estimator
from ebql.tabular import EBQL, DoubleQLearning
from ebql.tabular.rules import Rule, argmax, bootstrap, ensemble, maximum

RNG = np.random.default_rng(0)

# Decoys: member 0 selects action 1. Its own value there (50), what the others hold elsewhere (90..99),
# and the others' own favourites must leave no trace: only 4 and 6 count.
Q = np.array(
    [
        [10.0, 50.0, 20.0],
        [99.0, 4.0, 98.0],
        [97.0, 6.0, 90.0],
    ]
)


def test_the_member_selects_and_only_the_others_evaluate():
    assert ensemble(Q, 0, RNG) == (4.0 + 6.0) / 2


def test_each_member_selects_for_itself():
    assert ensemble(Q, 1, RNG) == (10.0 + 97.0) / 2
    assert ensemble(Q, 2, RNG) == (10.0 + 99.0) / 2


def test_two_members_are_double_q_learning():
    assert ensemble(Q[:2], 0, RNG) == 4.0
    assert ensemble(Q[:2], 1, RNG) == 10.0


def test_q_learning_selects_and_evaluates_with_the_same_table():
    assert maximum(Q[:1], 0, RNG) == 50.0


def test_each_rule_is_found_by_its_number():
    assert bootstrap(Rule.MAXIMUM, Q, 0, RNG) == maximum(Q, 0, RNG)
    assert bootstrap(Rule.ENSEMBLE, Q, 0, RNG) == ensemble(Q, 0, RNG)


@given(hnp.arrays(float, st.tuples(st.integers(2, 6), st.integers(1, 5)), elements=st.floats(-9, 9)))
def test_the_rule_is_the_ensemble_estimator_of_one_sample_each(q):
    if np.sum(q[0] == q[0].max()) > 1:
        return  # The estimator takes the first of tied arms, the rule any of them.
    assert ensemble(q, 0, RNG) == pytest.approx(ensemble_estimator(q.T, len(q)).value, abs=1e-12)


def test_argmax_breaks_ties_evenly_and_never_picks_less():
    values = np.array([3.0, 1.0, 3.0, 3.0, 2.0])
    picks = np.bincount([argmax(values, RNG) for _ in range(6000)], minlength=5)
    assert picks[1] == picks[4] == 0
    assert np.all(np.abs(picks[[0, 2, 3]] - 2000) < 5 * np.sqrt(6000 * 2 / 9))


def test_agents_refuse_what_makes_no_sense():
    with pytest.raises(ValueError, match="ensemble size must be at least 2"):
        EBQL(1)
    with pytest.raises(ValueError, match="Unknown turn 'alternat'. Did you mean 'alternate'"):
        DoubleQLearning("alternat")
