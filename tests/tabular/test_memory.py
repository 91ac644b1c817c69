import numpy as np

from ebql.tabular.memory import decay_table, empty_memory

TABLES = np.array([[[0.1, 0.2, 0.3], [1e16, 1.0, -1e16]]])  # (S, A, K)


def test_action_values_are_summed_in_the_order_of_the_compiled_code():
    memory = empty_memory(TABLES.copy(), pessimistic=False)
    assert memory.action_values.tolist() == [[0.1 + 0.2 + 0.3, (1e16 + 1.0) - 1e16]]


def test_pessimistic_agents_act_on_the_minimum():
    assert empty_memory(TABLES.copy(), pessimistic=True).action_values.tolist() == [[0.1, -1e16]]


def test_nothing_is_counted_yet():
    memory = empty_memory(np.zeros((3, 2, 4)), pessimistic=False)
    assert memory.updates.shape == (3, 2, 4)
    assert memory.visits.shape == (3,)
    assert not any(array.any() for array in memory)


def test_the_table_holds_the_powers_of_visits():
    assert decay_table(1.0, 5).tolist() == [0.0, 1.0, 1 / 2, 1 / 3, 1 / 4]
    assert decay_table(0.0, 3).tolist() == [0.0, 1.0, 1.0]
