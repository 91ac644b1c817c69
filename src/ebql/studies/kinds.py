"""The two kinds of run: deep agents, and tabular agents that learn many seeds at once."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from typing import Any, get_args, get_origin

from ebql.deep.config.agents import CONFIGS, config_type
from ebql.deep.config.presets import preset_config, preset_of
from ebql.environments import make_lanes
from ebql.errors import InputError
from ebql.studies.model import AgentEntry, Kind, Run
from ebql.studies.tables.agents import TABLE_AGENTS, rate, table_agent, table_defaults
from ebql.studies.tables.worlds import table_world

DEEP, TABULAR = "deep", "tabular"


class DeepKind:
    """Deep agents: one run for each agent, environment and seed, with the options of `ebql train`."""

    name, length_key, longest = DEEP, "steps", 10**15

    @property
    def agents(self) -> Collection[str]:
        """The names of the agents."""
        return CONFIGS.keys()

    def options(self, agent: str) -> Collection[str]:
        """The fields of the agent's config, without the seed: the study sets that."""
        return {field.name for field in fields(config_type(agent))} - {"seed"}

    def list_depth(self, agent: str, option: str) -> int:
        """The depth of the option's tuples: 1 for the widths of hidden layers, 0 for a number."""
        types = {field.name: field.type for field in fields(config_type(agent))}
        return _tuple_depth(types[option])

    def check_installed(self) -> None:
        """Look for the packages of the extra without importing them, which would take seconds."""
        for package in ("torch", "safetensors", "tensorboardX"):
            if find_spec(package) is None:
                raise InputError(f'Deep agents need {package}: pip install "ebql[deep]"')

    def check_environment(self, environment: str) -> None:
        """Create the environment once: it must exist, be installed, and have discrete actions."""
        make_lanes(environment).close()

    def runs(self, entry: AgentEntry, environment: str, seeds: tuple[int, ...], length: int) -> Sequence[Run]:
        """Return one run for each seed, with a value for every option."""
        config_class = config_type(entry.name)
        preset = entry.preset or preset_of(environment, config_class)
        config = preset_config(config_class, preset).override(**entry.options)
        config.check_exploration()
        complete = [json.loads(json.dumps(config.override(seed=seed).to_json())) for seed in seeds]
        return [
            Run(self.name, environment, entry.name, entry.label, preset, options, (seed,), length, "steps")
            for seed, options in zip(seeds, complete, strict=True)
        ]

    def cpus(self, runs: Sequence[Run]) -> int:
        """One core for each thread of the matrix products."""
        return max(1, *(int(run.options["threads"]) for run in runs))


_LEARNING: dict[str, Any] = {
    "epsilon": 0.1,
    "learning_rate": {"power": 0.8},
    "discount": 1.0,
    "max_steps": 1_000,  # agents that underestimate can walk in circles for ever, for example on CliffWalking
    "record_every": None,
}
_RECORDS = 100


class TabularKind:
    """Tabular agents: one run of all seeds for each agent and environment."""

    name, length_key, longest = TABULAR, "episodes", 10**7  # an array holds the step size of each

    @property
    def agents(self) -> Collection[str]:
        """The names of the agents."""
        return TABLE_AGENTS.keys()

    def options(self, agent: str) -> Collection[str]:
        """The options of the agent and those of learning."""
        return {*_LEARNING, *table_defaults(agent)}

    def list_depth(self, agent: str, option: str) -> int:
        """0: no option of tables is a list."""
        del agent, option
        return 0

    def check_installed(self) -> None:
        """Do nothing: tabular agents need no extra package."""

    def check_environment(self, environment: str) -> None:
        """Require an environment whose exact values are known."""
        table_world(environment)

    def runs(self, entry: AgentEntry, environment: str, seeds: tuple[int, ...], length: int) -> Sequence[Run]:
        """Return a single run with all seeds."""
        if entry.preset is not None:
            raise InputError("Tabular agents have no presets: drop the key preset.")
        for name in entry.options.keys() - set(self.options(entry.name)):
            raise InputError(f"Tabular agents have no {name}: their values are exact. Drop the key.")
        options = {
            **table_defaults(entry.name),
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
            _require_positive(name, options[name])
        return [
            Run(self.name, environment, entry.name, entry.label, None, options, seeds, len(seeds), "seeds")
        ]

    def cpus(self, runs: Sequence[Run]) -> int:
        """One core: a study has more runs than a machine has cores."""
        del runs
        return 1


KINDS: dict[str, Kind] = {kind.name: kind for kind in (DeepKind(), TabularKind())}


def kind_of(config: Mapping[str, Any]) -> str:
    """Return the kind of the run that a `config.json` describes."""
    # Runs made before the key was called kind: tabular ones have a floor, deep ones have neither.
    return str(config.get("kind") or config.get("floor") or DEEP)


def complete_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in a run's `config.json`, with defaults for options that were added since."""
    agent, options = config["agent"], config["options"]
    if kind_of(config) == TABULAR:
        return {**table_defaults(agent), **options} if agent in TABLE_AGENTS else dict(options)
    if agent not in CONFIGS:
        return dict(options)
    defaults: dict[str, Any] = json.loads(json.dumps(CONFIGS[agent]().to_json()))
    return {**defaults, **options}


def _tuple_depth(kind: Any) -> int:
    """Return how deeply tuples are nested in a type: 1 for tuple[int, ...]."""
    if get_origin(kind) is not tuple:
        return 0
    return 1 + max(_tuple_depth(part) for part in get_args(kind))


def _require_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {value!r}.")
