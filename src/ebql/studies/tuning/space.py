"""The search space of a tuning: which options vary, and over which values.

learning_rate = { low = 1e-4, high = 1e-2, log = true }   # a range; ends included
ensemble_size = { low = 2, high = 10 }                    # whole numbers, as the option's own values
hidden = [[64, 64], [256, 256]]                           # a list of values
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebql.deep.config.base import AgentConfig
from ebql.errors import InputError, unknown_name

if TYPE_CHECKING:
    from optuna import Trial

_RANGE_KEYS = ("low", "high", "log")
_NOT_TUNED = ("seed", "device", "threads", "envs", "log_period", "checkpoint_period")

# What matters most for small networks, around the values of the presets.
_COMMON: dict[str, Any] = {
    "learning_rate": {"low": 1e-4, "high": 3e-3, "log": True},
    "n_step": [1, 3, 5],
    "batch_size": [32, 64, 128],
    "target_period": {"low": 100, "high": 2_000, "log": True},
    "epsilon_end": {"low": 0.01, "high": 0.1},
}
_ENSEMBLE: dict[str, Any] = {"ensemble_size": {"low": 2, "high": 10}}

SPACES: dict[str, dict[str, Any]] = {
    "mountain-car": _COMMON | {"update_period": [4, 16], "updates_per_period": [4, 8]},
    "minatar": {
        "learning_rate": {"low": 5e-5, "high": 1e-3, "log": True},
        "n_step": [1, 3],
        "target_period": {"low": 250, "high": 4_000, "log": True},
        "optimiser_eps": {"low": 1e-8, "high": 1e-3, "log": True},
    },
}
"""The search spaces of presets; the others share a common one."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float
    log: bool
    """Whether factors are uniform, not differences."""
    whole: bool

    def suggest(self, trial: "Trial", name: str) -> int | float:
        """Return the trial's value."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choice:
    """A list of values."""

    values: tuple[Any, ...]

    def suggest(self, trial: "Trial", name: str) -> Any:
        """Return the trial's value. Optuna stores choices as text, since lists are none of its types."""
        return json.loads(trial.suggest_categorical(name, [json.dumps(value) for value in self.values]))


Space = dict[str, Range | Choice]


def read_space(path: str | Path, config: AgentConfig) -> Space:
    """Read a search space from a TOML file, and check it against the options of an agent."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"Cannot read the search space {str(path)!r}: {reason}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"The search space {str(path)!r} is not valid TOML: {error}") from error
    return parse_space(content, config)


def default_space(preset: str, config: AgentConfig) -> Space:
    """Return the search space of a preset, with the number of members if the agent has an ensemble."""
    content = SPACES.get(preset, _COMMON)
    if any(field.name == "ensemble_size" for field in fields(config)):
        content = content | _ENSEMBLE
    return parse_space(content, config)


def parse_space(content: Mapping[str, Any], config: AgentConfig) -> Space:
    """Check a search space; every value in it must be one that the option may have."""
    if not content:
        raise InputError("The search space is empty: name an option and its values.")
    known = {field.name for field in fields(config)} - set(_NOT_TUNED)
    space: Space = {}
    for name, entry in content.items():
        if name not in known:
            raise unknown_name(f"option of {config.name} in the search space", name, known)
        space[name] = _dimension(name, entry, config)
    return space


def _dimension(name: str, entry: object, config: AgentConfig) -> Range | Choice:
    if isinstance(entry, list):
        if not entry:
            raise InputError(f"The search space lists no values of {name}.")
        for value in entry:
            _check_value(name, value, config)
        return Choice(tuple(entry))
    if not isinstance(entry, dict) or not {"low", "high"} <= entry.keys() <= set(_RANGE_KEYS):
        raise InputError(
            f"The search space of {name} must be a list of values or {{ low = …, high = …, log = true }}, "
            f"not {entry!r}."
        )
    low, high, log = entry["low"], entry["high"], entry.get("log", False)
    for value in (low, high):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"The range of {name} must be of numbers, not {value!r}.")
        _check_value(name, value, config)
    if not isinstance(log, bool):
        raise InputError(f"log must be true or false, not {log!r}.")
    if not low < high or (log and low <= 0):
        raise InputError(
            f"The range of {name} must rise{' from above 0' if log else ''}, not from {low} to {high}."
        )
    return Range(low, high, log, isinstance(getattr(config, name), int))


def _check_value(name: str, value: Any, config: AgentConfig) -> None:
    """Refuse a value that the option cannot have, whatever the other options are."""
    try:
        config.override(**{name: value})
    except InputError as error:
        raise InputError(f"The search space of {name} contains {value!r}: {error}") from error
