"""A study as plain values: its runs, the resources they need, and what every kind of run provides."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

STUDY_FILE = "study.toml"


@dataclass(frozen=True)
class Run:
    """One run of a study: everything that its process needs to know."""

    kind: str
    """The name of its `Kind`: deep or tabular."""
    environment: str
    agent: str
    label: str
    """The study's name for the agent with these options."""
    preset: str | None
    options: dict[str, Any]
    """Every option with its value."""
    seeds: tuple[int, ...]
    """A deep run has one seed; a tabular run has all seeds of the study."""
    length: int
    """The agent steps to train, or the number of seeds of a tabular run."""
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
        """Rebuild a run from the output of `to_json`, decoded from JSON."""
        return cls(**{**content, "seeds": tuple(content["seeds"])})


@dataclass(frozen=True)
class Resources:
    """What each run occupies, and how often a cluster restarts it after a failure of its machine."""

    cpus: int
    gpus: float
    retries: int


@dataclass(frozen=True)
class Study:
    """A study that has passed all checks."""

    kind: str
    runs: tuple[Run, ...]
    resources: Resources
    text: str
    """The content of the study's file."""
    notes: tuple[str, ...] = ()
    """What its author should know, one line each: keys that have a new name."""


@dataclass(frozen=True)
class AgentEntry:
    """An agent as a study lists it: its name, its label and its options."""

    name: str
    label: str
    preset: str | None
    options: dict[str, Any]
    """Options of the whole study, overridden by the agent's own."""


class Kind(Protocol):
    """A kind of run: what a study needs to know about the agents that it trains."""

    name: str
    length_key: str
    """The key of the study that says how long a run is: steps or episodes."""
    longest: int
    """The largest value of that key."""

    @property
    def agents(self) -> Collection[str]:
        """The names of the agents."""
        ...

    def options(self, agent: str) -> Collection[str]:
        """The names of an agent's options, without its seed."""
        ...

    def list_depth(self, agent: str, option: str) -> int:
        """How deeply lists are nested in a value of an agent's option; 0 if it is no list."""
        ...

    def check_installed(self) -> None:
        """Raise an `InputError` if a package that the agents need is missing."""
        ...

    def check_environment(self, environment: str) -> None:
        """Raise an `InputError` if the agents cannot learn in this environment."""
        ...

    def runs(self, entry: AgentEntry, environment: str, seeds: tuple[int, ...], length: int) -> Sequence[Run]:
        """Return the runs of an agent in an environment, in the order of the seeds."""
        ...

    def cpus(self, runs: Sequence[Run]) -> int:
        """The number of cores that one of these runs keeps busy."""
        ...


def slug(label: str) -> str:
    """Return a label for use in file names: lower case, other characters replaced by single dashes."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
