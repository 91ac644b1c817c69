import numpy as np
import pytest

from ebql.tabular.agents import Turn
from ebql.tabular.kernel import act, member_to_update, rate, sample, store_past, update_entry
from ebql.tabular.memory import decay_table
from ebql.tabular.rules import Rule

RNG = np.random.default_rng(0)


def test_a_rate_falls_with_visits_within_and_beyond_its_table():
    table = decay_table(0.8, 10)
    for visits in (1, 2, 9, 10, 1000):
        assert rate(0.5, table, 0.8, visits) == pytest.approx(0.5 * visits**-0.8)
    assert rate(3.0, table, 0.8, 2) == 1.0


def test_actions_are_greedy_or_uniformly_random():
    values = np.array([1.0, 3.0, 2.0])
    assert {act(values, 0.0, RNG) for _ in range(50)} == {1}
    counts = np.bincount([act(values, 0.3, RNG) for _ in range(6000)], minlength=3)
    assert np.all(np.abs(counts - [600, 4800, 600]) < 5 * np.sqrt(600))


def test_members_take_turns_or_are_drawn():
    assert [member_to_update(Turn.ALTERNATE, time, 3, RNG) for time in range(4)] == [0, 1, 2, 0]
    assert {member_to_update(Turn.RANDOM, 0, 3, RNG) for _ in range(60)} == {0, 1, 2}
    assert member_to_update(Turn.RANDOM, 5, 1, RNG) == 0


def test_an_update_moves_one_entry_and_the_sum_over_members():
    tables = np.arange(12.0).reshape(2, 2, 3)  # (S, A, K)
    action_values, before = tables.sum(-1), tables.copy()
    update_entry(tables, action_values, 1, 0, 2, 0.25, 20.0)
    before[1, 0, 2] = 8.0 + 0.25 * (20.0 - 8.0)
    np.testing.assert_array_equal(tables, before)
    np.testing.assert_array_equal(action_values, before.sum(-1))


def test_samples_follow_the_distribution_and_certain_outcomes_use_no_random_number():
    counts = np.bincount([sample(np.array([0.2, 0.5, 1.0]), RNG) for _ in range(5000)], minlength=3)
    assert np.all(np.abs(counts - [1000, 1500, 2500]) < 5 * np.sqrt(1250))
    state = RNG.bit_generator.state
    assert sample(np.array([1.0, 1.0]), RNG) == 0
    assert RNG.bit_generator.state == state


def test_each_rule_that_looks_back_stores_its_own_past():
    """Action 1 went from 4 to 5. The other values of the tables are decoys."""

    def stored(rule, period, count, width=2):
        row = np.array([[9.0, 7.0, 6.0, 3.0], [5.0, 2.0, 1.0, 0.5]])[:, :width].copy()
        store_past(rule, period, row[1], row, 1, 4.0, count)
        return row.tolist()

    assert stored(Rule.SELF_CORRECTING, 0, 8) == [[9.0, 7.0], [5.0, 4.0]]
    assert stored(Rule.SPEEDY, 0, 8) == [[9.0, 9.0], [5.0, 4.0]]
    first = [9.0, 7.0, 6.0, 3.0]
    assert stored(Rule.AVERAGED, 3, 1, width=4) == [first, [5.0] * 4]
    assert stored(Rule.AVERAGED, 3, 3, width=4) == [first, [5.0] * 4]
    assert stored(Rule.AVERAGED, 3, 4, width=4) == [first, [5.0, 4.0, 5.0, 5.0]]
    assert stored(Rule.AVERAGED, 3, 7, width=4) == [first, [5.0, 4.0, 2.0, 5.0]]
    assert stored(Rule.AVERAGED, 3, 12, width=4) == [first, [5.0, 2.0, 1.0, 0.5]]
    assert stored(Rule.AVERAGED, 3, 13, width=4) == [first, [5.0, 4.0, 2.0, 1.0]]
