import pytest

from ebql.errors import InputTypeError
from ebql.studies.tables.agents import TABLE_AGENTS, rate, table_agent, table_defaults
from ebql.tabular import EBQL, Schedule, linear


def test_an_agent_takes_its_own_options_and_defaults_for_the_rest():
    assert table_agent("ebql", {"ensemble_size": 7, "discount": 0.5}) == EBQL(7)
    assert table_agent("ebql", {}) == EBQL(**table_defaults("ebql"))


def test_every_tabular_agent_has_defaults():
    for name in TABLE_AGENTS:
        table_agent(name, table_defaults(name))


def test_rates_are_numbers_powers_or_lines():
    assert rate("epsilon", 0.25) == Schedule(0.25)
    assert rate("epsilon", {"power": 0.8}) == Schedule(1.0, 0.8)
    assert rate("epsilon", {"scale": 2, "power": 0.8}) == Schedule(2, 0.8)
    line = rate("epsilon", {"start": 1, "end": 0.1, "episodes": 500})
    assert line.scales(600).tolist() == linear(1, 0.1, 500).scales(600).tolist()
    for value in (True, "fast", {"power": "x"}, {"scale": 2}, {"start": 1, "end": 0.1}):
        with pytest.raises(InputTypeError, match="epsilon must be a number"):
            rate("epsilon", value)
