"""A study: one TOML file that stands for many runs.

    agents = ["dqn", "double-dqn"]
    environments = ["MinAtar/Breakout-v1", "MinAtar/Asterix-v1"]
    seeds = 5                                # 0, 1, 2, 3, 4; or the list itself
    steps = 500_000
    learning_rate = 1e-4                     # any option, for every agent that has it

    [[agent]]
    name = "ebql"
    label = "EBQL 10"
    ensemble_size = 10                       # any option of this agent alone

Every combination is one run, with a folder whose name depends on nothing else. The runs of the first
seed come first, so that a study that is cut short has compared everything with everything.
"""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from ebql.environments import canonical_name
from ebql.errors import InputError, InputTypeError, unknown_name, whole_number

STUDY_FILE = "study.toml"

_RESOURCES = {"cpus": 1, "gpus": 0, "retries": 3}
_KEYS = ("agents", "agent", "environments", "seeds", "preset", "evaluation", "floor", *_RESOURCES)
_AGENT_KEYS = ("name", "label", "preset", "evaluation")
_EVALUATION = ("period", "episodes", "epsilon")


@dataclass(frozen=True)
class Run:
    """One run of a study: all that its process needs to know, as plain values."""

    floor: str
    environment: str
    agent: str
    label: str
    preset: str | None
    options: dict[str, Any]
    """Every option with its value."""
    seeds: tuple[int, ...]
    """One on the deep floor; a run of tables takes all of the study's."""
    length: int
    """The agent steps to train, or the number of seeds of tables."""
    unit: str
    """What `length` counts: steps or seeds."""

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        last = str(self.seeds[0]) if self.unit == "steps" else "all-seeds"
        return f"{self.environment.replace('/', '-')}_{slug(self.label)}_{last}"

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON-able values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Run":
        """Rebuild a run from `to_json` gone through JSON."""
        return cls(**{**content, "seeds": tuple(content["seeds"])})


@dataclass(frozen=True)
class Resources:
    """What a run takes, and how often a cluster starts it again after a machine failed."""

    cpus: int
    gpus: float
    retries: int


@dataclass(frozen=True)
class Study:
    """A valid study."""

    floor: str
    runs: tuple[Run, ...]
    resources: Resources
    text: str
    """The file's content."""


@dataclass(frozen=True)
class AgentEntry:
    """An agent of a study: a name, what to call it, and options over those of all agents."""

    name: str
    label: str
    preset: str | None
    options: dict[str, Any]


class Floor(Protocol):
    """What a study must know of the agents that it runs, deep ones or tables."""

    name: str
    length_key: str
    """The key that says how long a run is: steps or episodes."""

    @property
    def agents(self) -> Collection[str]:
        """The names of the agents."""
        ...

    def options(self, agent: str) -> Collection[str]:
        """The names of the options of an agent, apart from its seed."""
        ...

    def check_installed(self) -> None:
        """Refuse to run agents that need what is not installed."""
        ...

    def check_environment(self, environment: str) -> None:
        """Refuse an environment that the agents can't live in."""
        ...

    def runs(self, entry: AgentEntry, environment: str, seeds: tuple[int, ...], length: int) -> Sequence[Run]:
        """Return the runs of an agent in an environment, in the order of the seeds."""
        ...

    def cpus(self, runs: Sequence[Run]) -> int:
        """The cores that one of these runs keeps busy."""
        ...


def read_study(path: str | Path, *, to_run: bool = True) -> Study:
    """Read and check a study's file; whatever is wrong with it is refused with one line.

    Unless it is `to_run`, its environments need not be installed here.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise InputError(f"Cannot read the study {str(path)!r}: {why}.") from error
    return parse_study(text, f"the study {str(path)!r}", to_run=to_run)


def parse_study(text: str, source: str, *, to_run: bool = True) -> Study:
    """Check a study's text, which comes from `source`; whatever is wrong is refused with one line."""
    from ebql.studies.kinds import FLOORS

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source[0].upper()}{source[1:]} is not valid TOML: {error}") from error
    floor = content.get("floor", "deep")
    if not isinstance(floor, str) or floor not in FLOORS:
        raise unknown_name("floor", str(floor), FLOORS)
    found = _study(content, FLOORS[floor], text)
    if to_run:
        FLOORS[floor].check_installed()
        for environment in dict.fromkeys(run.environment for run in found.runs):
            FLOORS[floor].check_environment(environment)
    return found


def slug(label: str) -> str:
    """Return a label as it stands in file names: lower case, one dash for whatever is no letter or digit."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def _study(content: Mapping[str, Any], floor: Floor, text: str) -> Study:
    agents = _agent_tables(content)
    for table in agents:
        _known_agent(table["name"], floor)
    _check_keys(content, agents, floor)
    environments = [canonical_name(name) for name in _names(content, "environments")]
    _refuse_repeats("environment", environments, "Name it once.")
    seeds = _seeds(content)
    length = _length(content, floor)
    entries = [_entry(content, table, floor) for table in agents]
    _refuse_repeats("label", [slug(entry.label) for entry in entries], "Give each agent a label of its own.")
    by_pair = [floor.runs(e, environment, seeds, length) for environment in environments for e in entries]
    _refuse_twins(by_pair)
    runs = tuple(run for of_one_seed in zip(*by_pair, strict=True) for run in of_one_seed)
    _refuse_repeats("run", [run.name for run in runs], "Two environments share a folder's name.")
    return Study(floor.name, runs, _resources(content, floor, runs), text)


def _agent_tables(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    short = _names(content, "agents") if "agents" in content else []
    tables = content.get("agent", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputTypeError("agent must be tables, each under a line [[agent]].")
    for table in tables:
        if not isinstance(table.get("name"), str):
            raise InputError('Every [[agent]] needs its agent\'s name: name = "ebql".')
    found = [*({"name": name} for name in short), *tables]
    if not found:
        raise InputError('The study names no agents: agents = ["dqn", "ebql"].')
    return found


def _known_agent(name: str, floor: Floor) -> None:
    from ebql.studies.kinds import FLOORS

    if name in floor.agents:
        return
    for other in FLOORS.values():
        if name in other.agents:
            raise InputError(f'{name!r} is an agent of the {other.name} floor: floor = "{other.name}".')
    raise unknown_name("agent", name, floor.agents)


def _check_keys(content: Mapping[str, Any], agents: Sequence[Mapping[str, Any]], floor: Floor) -> None:
    of_study = {*_KEYS, floor.length_key}
    of_agents = {option for table in agents for option in floor.options(table["name"])}
    for key in content:
        if key not in of_study | of_agents:
            raise unknown_name("key of the study", key, of_study | of_agents)
    for table in agents:
        known = {*_AGENT_KEYS, *floor.options(table["name"])}
        for key in table:
            if key in known:
                continue
            if key in of_study:
                raise InputError(f"{key!r} is a key of the whole study: put it above the first [[agent]].")
            raise unknown_name(f"option of {table['name']}", key, known)


def _entry(content: Mapping[str, Any], table: Mapping[str, Any], floor: Floor) -> AgentEntry:
    name = table["name"]
    label = table.get("label", name)
    if not isinstance(label, str) or not slug(label):
        raise InputError(f"A label needs a letter or a digit, not {label!r}.")
    preset = table.get("preset", content.get("preset"))
    if preset is not None and not isinstance(preset, str):
        raise InputTypeError(f"preset must be a word, not {preset!r}.")
    options: dict[str, Any] = {}
    for source in (content, table):  # an agent's own options win over those of all
        options |= _evaluation(source)
        options |= {key: value for key, value in source.items() if key in floor.options(name)}
    return AgentEntry(name, label, preset, options)


def _evaluation(source: Mapping[str, Any]) -> dict[str, Any]:
    table = source.get("evaluation", {})
    if not isinstance(table, dict):
        raise InputTypeError("evaluation must be a table, such as { period = 25_000, episodes = 20 }.")
    for key in table:
        if key not in _EVALUATION:
            raise unknown_name("key of evaluation", key, _EVALUATION)
    return {f"evaluation_{key}": value for key, value in table.items()}


def _names(content: Mapping[str, Any], key: str) -> list[str]:
    names = content.get(key)
    if names is None:
        raise InputError(f"The study names no {key}.")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputTypeError(f"{key} must be a list of names, not {names!r}.")
    if not names:
        raise InputError(f"The list of {key} is empty.")
    _refuse_repeats(key.removesuffix("s"), names, "Name it once.")
    return names


def _seeds(content: Mapping[str, Any]) -> tuple[int, ...]:
    seeds = content.get("seeds")
    if seeds is None:
        raise InputError("The study has no seeds: seeds = [0, 1, 2], or how many of them.")
    if not isinstance(seeds, list):
        return tuple(range(_whole("seeds", seeds, 1)))
    checked = tuple(_whole("A seed", seed, 0) for seed in seeds)
    if any(seed >= 2**63 for seed in checked):
        raise InputError(f"A seed must be below 2⁶³, not {max(checked)}.")
    if not checked:
        raise InputError("The list of seeds is empty.")
    _refuse_repeats("seed", checked, "Equal seeds give equal results, not more evidence.")
    return checked


def _length(content: Mapping[str, Any], floor: Floor) -> int:
    if floor.length_key not in content:
        raise InputError(f"The study does not say how many {floor.length_key} a run takes.")
    return _whole(floor.length_key, content[floor.length_key], 1)


def _resources(content: Mapping[str, Any], floor: Floor, runs: Sequence[Run]) -> Resources:
    gpus = content.get("gpus", _RESOURCES["gpus"])
    if isinstance(gpus, bool) or not isinstance(gpus, int | float) or not 0 <= gpus < 1e3:
        raise InputError(f"gpus must be a number of GPUs, such as 0, 0.5 or 1, not {gpus!r}.")
    cpus = _whole("cpus", content.get("cpus", floor.cpus(runs)), 1)
    retries = _whole("retries", content.get("retries", _RESOURCES["retries"]), 0)
    return Resources(cpus, gpus, retries)


def _refuse_twins(by_pair: Sequence[Sequence[Run]]) -> None:
    """Refuse agents that differ in their label alone: they would be one and the same run, twice."""
    firsts = [
        (run.environment, run.agent, repr(sorted(run.options.items())), run.label) for run, *_ in by_pair
    ]
    for one, other in pairwise(sorted(firsts)):
        if one[:3] == other[:3]:
            raise InputError(f"The agents {one[3]!r} and {other[3]!r} have the same options: drop one.")


def _refuse_repeats(kind: str, names: Sequence[object], advice: str) -> None:
    seen: set[object] = set()
    for name in names:
        if name in seen:
            raise InputError(f"The study has the {kind} {name!r} twice. {advice}")
        seen.add(name)


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool):  # which Python would take for a number
        raise InputTypeError(f"{name} must be a whole number, not {value!r}.")
    return whole_number(name, value, least)
