"""Every tabular and deep agent is in the catalogue, and every tabular agent of the catalogue exists."""

from ebql import tabular
from ebql.catalogue import FAMILY
from ebql.deep.config.agents import CONFIGS
from ebql.tabular.agents import Agent


def test_every_tabular_agent_is_listed_once_and_exists():
    listed = [method.tabular for method in FAMILY if method.tabular]
    known = {name for name in tabular.__all__ if name[0].isupper()}
    helpers = {"Agent", "Group", "History", "Metric", "Schedule"}
    assert sorted(listed) == sorted(known - helpers)
    for name in listed:
        assert isinstance(getattr(tabular, name)(), Agent)


def test_every_deep_agent_is_listed_once():
    assert sorted(method.deep for method in FAMILY if method.deep) == sorted(CONFIGS)


def test_entries_are_complete_and_on_one_line():
    for method in FAMILY:
        assert method.tabular or method.deep
        assert method.bias in ("over", "under", "either")
        assert method.line.endswith(".")
        assert "\n" not in method.line + method.paper
