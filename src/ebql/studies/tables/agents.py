"""Tabular agents as a study names them, with their options."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from ebql import tabular
from ebql.catalogue import FAMILY
from ebql.errors import InputTypeError
from ebql.studies.model import slug
from ebql.tabular import Agent, Schedule, linear

TABLE_AGENTS: dict[str, Callable[..., Agent]] = {
    slug(method.name): getattr(tabular, method.tabular) for method in FAMILY if method.tabular
}


def table_defaults(agent: str) -> dict[str, Any]:
    """Return the agent's own options with their default values."""
    own = inspect.signature(TABLE_AGENTS[agent]).parameters
    return {name: parameter.default for name, parameter in own.items()}


def table_agent(name: str, options: Mapping[str, Any]) -> Agent:
    """Return the agent with this name; options that are not its own are ignored."""
    make = TABLE_AGENTS[name]
    own = inspect.signature(make).parameters
    # An option may be missing if an earlier version made the run: it then has its default.
    return make(**{key: options[key] for key in own if key in options})


def rate(name: str, value: object) -> Schedule:
    """Return the schedule of ε or α that a study gives as a number or a table.

    { power = 0.8 } and { scale = 2, power = 0.8 } decay with the number of visits.
    { start = 1, end = 0.1, episodes = 500 } is linear in the episodes.
    """
    if _is_number(value):
        return Schedule(float(value))
    if isinstance(value, dict) and all(_is_number(number) for number in value.values()):
        if "power" in value and value.keys() <= {"scale", "power"}:
            return Schedule(value.get("scale", 1.0), value["power"])
        if value.keys() == {"start", "end", "episodes"}:
            return linear(value["start"], value["end"], value["episodes"])
    raise InputTypeError(
        f"{name} must be a number, {{ power = 0.8 }} or {{ start = 1, end = 0.1, episodes = 500 }}, "
        f"not {value!r}."
    )


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
