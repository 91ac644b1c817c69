"""What a study may say of deep agents, and of tables."""

import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from typing import Any, TypeGuard

from ebql import tabular
from ebql.catalogue import FAMILY
from ebql.deep.config.agents import CONFIGS, config_type
from ebql.deep.config.presets import preset_config, preset_of
from ebql.environments import make_lanes
from ebql.errors import InputError, InputTypeError
from ebql.studies.definition import AgentEntry, Floor, Run, slug
from ebql.studies.tables.worlds import table_world
from ebql.tabular import Agent, Schedule, linear


class DeepFloor:
    """Deep agents: a run an agent, an environment and a seed; options are those of `ebql train`."""

    name, length_key = "deep", "steps"

    @property
    def agents(self) -> Collection[str]:
        """The names of the agents."""
        return CONFIGS.keys()

    def options(self, agent: str) -> Collection[str]:
        """The fields of the agent's config but its seed, which the study gives."""
        return {field.name for field in fields(config_type(agent))} - {"seed"}

    def check_installed(self) -> None:
        """Look for the extra's packages, without the seconds that importing them takes."""
        for package in ("torch", "safetensors", "tensorboardX"):
            if find_spec(package) is None:
                raise InputError(f'Deep agents need {package}: pip install "ebql[deep]"')

    def check_environment(self, environment: str) -> None:
        """Make the environment once: it must exist, be installed, and have actions to choose among."""
        make_lanes(environment).close()

    def runs(self, entry: AgentEntry, environment: str, seeds: tuple[int, ...], length: int) -> Sequence[Run]:
        """Return a run for each seed, with its complete options."""
        kind = config_type(entry.name)
        preset = entry.preset or preset_of(environment, kind)
        config = preset_config(kind, preset).override(**entry.options)
        config.check_exploration()
        complete = [json.loads(json.dumps(config.override(seed=seed).to_json())) for seed in seeds]
        return [
            Run(self.name, environment, entry.name, entry.label, preset, options, (seed,), length, "steps")
            for seed, options in zip(seeds, complete, strict=True)
        ]

    def cpus(self, runs: Sequence[Run]) -> int:
        """A core for each thread of the matrix products."""
        return max(1, *(int(run.options["threads"]) for run in runs))


TABLE_AGENTS: dict[str, Callable[..., Agent]] = {
    slug(method.name): getattr(tabular, method.tabular) for method in FAMILY if method.tabular
}
_LEARNING: dict[str, Any] = {
    "epsilon": 0.1,
    "learning_rate": {"power": 0.8},
    "discount": 1.0,
    "max_steps": 1_000,  # pessimistic tables walk in circles, on CliffWalking for ever
    "record_every": None,
}
_RECORDS = 100


class TabularFloor:
    """Tables: a run an agent and an environment, with all seeds; options are those of `tabular.learn`."""

    name, length_key = "tabular", "episodes"

    @property
    def agents(self) -> Collection[str]:
        """The names of the agents."""
        return TABLE_AGENTS.keys()

    def options(self, agent: str) -> Collection[str]:
        """The arguments of the agent, and of its learning."""
        return {*_LEARNING, *inspect.signature(TABLE_AGENTS[agent]).parameters}

    def check_installed(self) -> None:
        """Tables need nothing more."""

    def check_environment(self, environment: str) -> None:
        """Refuse a world whose exact values are unknown."""
        table_world(environment)

    def runs(self, entry: AgentEntry, environment: str, seeds: tuple[int, ...], length: int) -> Sequence[Run]:
        """Return the one run of all seeds."""
        if entry.preset is not None:
            raise InputError("Tables have no presets: drop the key preset.")
        for name in entry.options.keys() - set(self.options(entry.name)):
            raise InputError(f"Tables have no {name}: their values are exact. Drop the key.")
        options = {
            **_table_defaults(entry.name),
            **_LEARNING,
            "record_every": max(1, length // _RECORDS),
            **entry.options,
            "episodes": length,
        }
        table_agent(entry.name, options)
        for name in ("epsilon", "learning_rate"):
            rate(name, options[name]).scales(length)
        table_world(environment).check_discount(options["discount"])
        for name in ("max_steps", "record_every"):
            _positive(name, options[name])
        return [
            Run(self.name, environment, entry.name, entry.label, None, options, seeds, len(seeds), "seeds")
        ]

    def cpus(self, runs: Sequence[Run]) -> int:
        """One core: a study has more runs than a machine has cores."""
        del runs
        return 1


def complete_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run's config, with the defaults of those that its version did not know."""
    agent, options = config["agent"], config["options"]
    if config.get("floor") == TabularFloor.name:
        return {**_table_defaults(agent), **options} if agent in TABLE_AGENTS else dict(options)
    if agent not in CONFIGS:
        return dict(options)
    defaults: dict[str, Any] = json.loads(json.dumps(CONFIGS[agent]().to_json()))
    return {**defaults, **options}


def _table_defaults(agent: str) -> dict[str, Any]:
    own = inspect.signature(TABLE_AGENTS[agent]).parameters
    return {name: parameter.default for name, parameter in own.items()}


def table_agent(name: str, options: Mapping[str, Any]) -> Agent:
    """Return the agent of tables with this name, given those of the options that are its own."""
    make = TABLE_AGENTS[name]
    own = inspect.signature(make).parameters
    # One that a run's version did not know yet has its default.
    return make(**{key: options[key] for key in own if key in options})


def rate(name: str, value: object) -> Schedule:
    """Return ε or α as a study writes it.

    A number; { power = 0.8 } or { scale = 2, power = 0.8 }, which falls with visits; or
    { start = 1, end = 0.1, episodes = 500 }, which goes from one to the other in so many episodes.
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


def _positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {value!r}.")


FLOORS: dict[str, Floor] = {floor.name: floor for floor in (DeepFloor(), TabularFloor())}
