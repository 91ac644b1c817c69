import numpy as np
import pytest

from ebql.tabular.agents import Turn
from ebql.tabular.kernel import (
    act,
    choose,
    learn_from,
    member_to_update,
    rate,
    sample,
    store_past,
    update_entry,
)
from ebql.tabular.learning import _settings
from ebql.tabular.memory import decay_table, empty_memory
from ebql.tabular.rules import Rule
from ebql.tabular.schedules import Schedule

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


# Actions 0 and 2 of three are legal in state 0, and 1 and 2 in state 1.
LEGAL = np.array([[0, 2, 1], [1, 2, 0]])
EXISTS = np.array([[True, False, True], [False, True, True]])


def memory_with(agent, illegal):
    """Tables of two states, with random values of legal actions and `illegal` as the value of all others."""
    tables = np.random.default_rng(7).normal(size=(2, 2, agent.ensemble_size))
    if illegal is not None:
        every = np.full((2, 3, agent.ensemble_size), illegal)
        every[EXISTS] = tables.reshape(4, -1)
        tables = every
    return empty_memory(tables, pessimistic=agent.pessimistic)


@pytest.mark.parametrize("decoy", [1e9, -1e9])
def test_with_every_rule_an_illegal_action_counts_for_nothing(any_agent, decoy):
    """Whatever its value, an update moves a table as it would in a world that lacks the action."""
    settings = _settings(any_agent, 1, Schedule(0.1), Schedule(0.5), 0.9)
    masked, lacking = memory_with(any_agent, decoy), memory_with(any_agent, None)
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    for place, taken in enumerate((0, 2)):
        for reward in range(5):
            learn_from(masked, settings, 0, taken, reward, 1, 2, LEGAL, 0, first)
            learn_from(lacking, settings, 0, place, reward, 1, 2, None, 0, second)
    np.testing.assert_array_equal(masked.tables[0, [0, 2]], lacking.tables[0])
    assert np.abs(lacking.tables[0] - memory_with(any_agent, None).tables[0]).max() > 0.1


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_with_every_behaviour_an_illegal_action_is_never_chosen(any_agent, epsilon):
    settings, rng = _settings(any_agent, 1, Schedule(epsilon), Schedule(0.5), 0.9), np.random.default_rng(2)
    memory = memory_with(any_agent, 1e9)
    chosen = [choose(memory, settings, state, 2, LEGAL, 0, rng) for state in (0, 1) for _ in range(40)]
    first, second = set(chosen[:40]), set(chosen[40:])
    assert first <= {0, 2}
    assert second <= {1, 2}
    if epsilon == 1:
        assert first | second == {0, 1, 2}
