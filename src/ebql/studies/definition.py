"""Read and check a study's TOML file.

    agents = ["dqn", "double-dqn"]
    environments = ["MinAtar/Breakout-v1", "MinAtar/Asterix-v1"]
    seeds = 5                                # 0, 1, 2, 3, 4; a list of seeds works too
    steps = 500_000
    learning_rate = 1e-4                     # any option, for every agent that has it

    [[agent]]
    name = "ebql"
    label = "EBQL 10"
    ensemble_size = 10                       # any option, for this agent alone
    n_step = [1, 3]                          # a list of values makes an agent of each: a grid

Every combination is one run. The name of its folder depends on that combination alone. The runs of the first
seed come first, so a study that is cut short has still compared every agent in every environment.
"""

import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from ebql.environments import canonical_name
from ebql.errors import InputError, InputTypeError, unknown_name, whole_number
from ebql.studies.kinds import DEEP, KINDS
from ebql.studies.model import AgentEntry, Kind, Resources, Run, Study, slug

_RESOURCES = {"cpus": 1, "gpus": 0, "retries": 3}
_OLD_KIND = "floor"  # what the key kind was called at first
_KEYS = ("agents", "agent", "environments", "seeds", "preset", "evaluation", "kind", *_RESOURCES)
_AGENT_KEYS = ("name", "label", "preset", "evaluation")
_MOST_SEEDS = 10**6
_EVALUATION_KEYS = ("period", "episodes", "epsilon")


def read_study(path: str | Path, *, to_run: bool = True) -> Study:
    """Read and check a study's file; the first problem raises a one-line error.

    If it is not `to_run`, its environments need not be installed here.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"Cannot read the study {str(path)!r}: {reason}.") from error
    return parse_study(text, f"the study {str(path)!r}", to_run=to_run)


def parse_study(text: str, source: str, *, to_run: bool = True) -> Study:
    """Check the text of a study; `source` says in errors where it comes from."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source[0].upper()}{source[1:]} is not valid TOML: {error}") from error
    except RecursionError as error:
        raise InputError(f"{source[0].upper()}{source[1:]} is nested too deeply.") from error
    notes = _rename_old_kind(content)
    kind_name = content.get("kind", DEEP)
    if not isinstance(kind_name, str) or kind_name not in KINDS:
        raise unknown_name("kind", str(kind_name), KINDS)
    kind = KINDS[kind_name]
    runs = _runs(content, kind)
    resources = _resources(content, kind, runs)
    if to_run:
        kind.check_installed()
        for environment in dict.fromkeys(run.environment for run in runs):
            kind.check_environment(environment)
    return Study(kind.name, runs, resources, text, notes)


def _rename_old_kind(content: dict[str, Any]) -> tuple[str, ...]:
    """Give the key `floor` its present name in `content`; return what to tell the author of the study."""
    if _OLD_KIND not in content:
        return ()
    if "kind" in content:
        raise InputError(f"{_OLD_KIND} is the old name of the key kind: drop {_OLD_KIND}.")
    content["kind"] = content.pop(_OLD_KIND)
    return (f'The key {_OLD_KIND} is now called kind: write kind = "{content["kind"]}" in the study.',)


def _runs(content: Mapping[str, Any], kind: Kind) -> tuple[Run, ...]:
    agents = _agent_tables(content)
    for table in agents:
        _check_agent(table["name"], kind)
    _check_keys(content, agents, kind)
    environments = [canonical_name(name) for name in _names(content, "environments")]
    _refuse_repeats("environment", environments, "Name it once.")
    seeds = _seeds(content)
    length = _length(content, kind)
    entries = [entry for table in agents for entry in _entries(content, table, kind)]
    _refuse_repeats("label", [slug(entry.label) for entry in entries], "Give each agent its own label.")
    by_pair = [
        kind.runs(entry, environment, seeds, length) for environment in environments for entry in entries
    ]
    _refuse_equal_options(by_pair)
    runs = tuple(run for of_one_seed in zip(*by_pair, strict=True) for run in of_one_seed)
    _refuse_repeats("run", [run.name for run in runs], "Two environments would share a folder.")
    return runs


def _agent_tables(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = _names(content, "agents") if "agents" in content else []
    tables = content.get("agent", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputTypeError("agent must be tables, each under a line [[agent]].")
    for table in tables:
        if not isinstance(table.get("name"), str):
            raise InputError('Every [[agent]] needs the name of its agent: name = "ebql".')
    agents = [*({"name": name} for name in names), *tables]
    if not agents:
        raise InputError('The study names no agents: agents = ["dqn", "ebql"].')
    return agents


def _check_agent(name: str, kind: Kind) -> None:
    if name in kind.agents:
        return
    for other in KINDS.values():
        if name in other.agents:
            raise InputError(f'{name!r} is a {other.name} agent: set kind = "{other.name}".')
    raise unknown_name("agent", name, kind.agents)


def _check_keys(content: Mapping[str, Any], agents: Sequence[Mapping[str, Any]], kind: Kind) -> None:
    study_keys = {*_KEYS, kind.length_key}
    agent_options = {option for table in agents for option in kind.options(table["name"])}
    for key in content:
        if key not in study_keys | agent_options:
            raise unknown_name("key of the study", key, study_keys | agent_options)
    for table in agents:
        known = {*_AGENT_KEYS, *kind.options(table["name"])}
        for key in table:
            if key in known:
                continue
            if key in study_keys:
                raise InputError(f"{key!r} is a key of the whole study: put it above the first [[agent]].")
            raise unknown_name(f"option of {table['name']}", key, known)


def _entries(content: Mapping[str, Any], table: Mapping[str, Any], kind: Kind) -> list[AgentEntry]:
    """Return the agent of a table, or one for each combination of the values that its options list."""
    name = table["name"]
    label = table.get("label", name)
    if not isinstance(label, str) or not slug(label):
        raise InputError(f"A label needs a letter or a digit, not {label!r}.")
    preset = table.get("preset", content.get("preset"))
    if preset is not None and not isinstance(preset, str):
        raise InputTypeError(f"preset must be a word, not {preset!r}.")
    options: dict[str, Any] = {}
    for source in (content, table):  # an agent's own options override those of the whole study
        options |= _evaluation_options(source)
        options |= {key: value for key, value in source.items() if key in kind.options(name)}
    varied = {key: value for key, value in options.items() if _lists(value) > kind.list_depth(name, key)}
    for key, values in varied.items():
        if not values:
            raise InputError(f"{key} lists no values.")
        _refuse_repeats(f"value of {key}", [repr(value) for value in values], "Name it once.")
    entries = []
    for combination in product(*varied.values()):
        chosen = dict(zip(varied, combination, strict=True))
        choices = [f"{key.replace('_', '-')} {_shown(value)}" for key, value in chosen.items()]
        entries.append(AgentEntry(name, ", ".join([label, *choices]), preset, options | chosen))
    return entries


def _lists(value: object) -> int:
    """Return how deeply lists are nested in a value: 0 for a number, 1 for a list of numbers."""
    if not isinstance(value, list):
        return 0
    return 1 + max((_lists(item) for item in value), default=0)


def _shown(value: object) -> str:
    return " ".join(map(_shown, value)) if isinstance(value, list) else str(value)


def _evaluation_options(source: Mapping[str, Any]) -> dict[str, Any]:
    table = source.get("evaluation", {})
    if not isinstance(table, dict):
        raise InputTypeError("evaluation must be a table, such as { period = 25_000, episodes = 20 }.")
    for key in table:
        if key not in _EVALUATION_KEYS:
            raise unknown_name("key of evaluation", key, _EVALUATION_KEYS)
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
        raise InputError("The study has no seeds: give a list (seeds = [0, 1, 2]) or a number (seeds = 3).")
    if not isinstance(seeds, list):
        return tuple(range(_at_most(_MOST_SEEDS, "seeds", _whole_number("seeds", seeds, 1))))
    checked = tuple(_whole_number("A seed", seed, 0) for seed in seeds)
    if any(seed >= 2**63 for seed in checked):
        raise InputError(f"A seed must be below 2⁶³, not {max(checked)}.")
    if not checked:
        raise InputError("The list of seeds is empty.")
    _refuse_repeats("seed", checked, "Equal seeds give equal results, not more evidence.")
    return checked


def _length(content: Mapping[str, Any], kind: Kind) -> int:
    if kind.length_key not in content:
        raise InputError(f"The study does not say how many {kind.length_key} a run takes.")
    length = _whole_number(kind.length_key, content[kind.length_key], 1)
    return _at_most(kind.longest, kind.length_key, length)


def _resources(content: Mapping[str, Any], kind: Kind, runs: Sequence[Run]) -> Resources:
    gpus = content.get("gpus", _RESOURCES["gpus"])
    if isinstance(gpus, bool) or not isinstance(gpus, int | float) or not 0 <= gpus < 1e3:
        raise InputError(f"gpus must be a number of GPUs, such as 0, 0.5 or 1, not {gpus!r}.")
    cpus = _whole_number("cpus", content.get("cpus", kind.cpus(runs)), 1)
    retries = _whole_number("retries", content.get("retries", _RESOURCES["retries"]), 0)
    return Resources(cpus, gpus, retries)


def _refuse_equal_options(by_pair: Sequence[Sequence[Run]]) -> None:
    """Refuse agents that differ in their label alone: they would be the same run twice."""
    firsts = [
        (run.environment, run.agent, repr(sorted(run.options.items())), run.label) for run, *_ in by_pair
    ]
    for one, other in pairwise(sorted(firsts)):
        if one[:3] == other[:3]:
            raise InputError(f"The agents {one[3]!r} and {other[3]!r} have the same options: drop one.")


def _refuse_repeats(role: str, names: Sequence[object], advice: str) -> None:
    seen: set[object] = set()
    for name in names:
        if name in seen:
            raise InputError(f"The study has the {role} {name!r} twice. {advice}")
        seen.add(name)


def _at_most(most: int, name: str, number: int) -> int:
    if number > most:
        raise InputError(f"{name} must be at most {most:,}, not {number}.")
    return number


def _whole_number(name: str, value: object, least: int) -> int:
    if isinstance(value, bool):  # Python counts True and False as numbers
        raise InputTypeError(f"{name} must be a whole number, not {value!r}.")
    return whole_number(name, value, least)
