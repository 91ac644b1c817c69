"""What a study will cost: the steps that are left, and the hours at measured speeds."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ebql.deep.config.presets import preset_of
from ebql.runs import read_metrics
from ebql.studies.definition import Run
from ebql.studies.plan import Planned
from ebql.studies.speed import whole_periods
from ebql.studies.status import speed_of

Key = tuple[str, str]

_WARM_UP, _CHUNK = 64, 100
_SECONDS = 2.0


class Speed(NamedTuple):
    """How fast a run is."""

    per_second: float
    """Agent steps, or seeds, a second, one run a core."""
    source: str
    """Where the number comes from, in words."""


def speeds(
    planned: Sequence[Planned], trying: Callable[[Run, int, int], None] = lambda _run, _number, _of: None
) -> dict[str, Speed]:
    """Return the speed of each run, by its name, from the nearest evidence that there is.

    First the clock of the study's own runs of the same agent in the same environment, evaluations
    included; then that of its runs in the same family of environments. If there are none, an agent trains
    for two seconds, once for each family, without evaluations. Tables are tried with a few seeds.
    `trying` is called before each trial: the run, the trial's number from 1 on, and how many there are.
    """
    alike, related = _recorded(planned, _kind), _recorded(planned, _family)
    untried: dict[Key, Run] = {}
    for item in planned:
        if _kind(item.run) not in alike and _family(item.run) not in related:
            untried.setdefault(_family(item.run), item.run)
    tried: dict[Key, Speed] = {}
    for number, (family, run) in enumerate(untried.items(), 1):
        trying(run, number, len(untried))
        tried[family] = _tried(run)
    found = {}
    for item in planned:
        kind, family = _kind(item.run), _family(item.run)
        if kind in alike:
            found[item.run.name] = Speed(alike[kind], "runs of this study")
        elif family in related:
            found[item.run.name] = Speed(related[family], "runs of this study in environments like it")
        else:
            found[item.run.name] = tried[family]
    return found


def _kind(run: Run) -> Key:
    return run.label, run.environment


def _family(run: Run) -> Key:
    return run.label, preset_of(run.environment) if run.unit == "steps" else run.environment


def _recorded(planned: Iterable[Planned], key: Callable[[Run], Key]) -> dict[Key, float]:
    """Return the mean speed, by its inverse, of the runs of each key that have a clock."""
    by_key: dict[Key, list[float]] = {}
    for item in planned:
        speed = _whole_run_speed(item.folder)
        if speed is not None:
            by_key.setdefault(key(item.run), []).append(speed)
    return {key: len(own) / sum(1 / speed for speed in own) for key, own in by_key.items()}


def _whole_run_speed(folder: Path) -> float | None:
    path = folder / "timing.jsonl"
    return speed_of([{"step": 0, "seconds": 0.0}, *read_metrics(path)]) if path.exists() else None


def _tried(run: Run) -> Speed:
    told = f"tried for {_SECONDS:.0f} s here"
    if run.unit == "seeds":
        return Speed(_tried_tables(run), told)
    return Speed(_tried_training(run), f"{told}, without evaluations")


def _tried_training(run: Run) -> float:
    """Return the agent steps a second once a network learns; nothing is written."""
    from ebql.deep.agents import AGENTS

    # Learning starts at once and ε is at its end: most of a run is like that.
    at_once = {
        "learning_starts": _WARM_UP,
        "evaluation_period": 0,
        "epsilon_start": run.options["epsilon_end"],
    }
    agent = AGENTS[run.agent](run.environment, preset=run.preset, **{**run.options, **at_once})
    agent.learn(2 * _WARM_UP)
    chunk = whole_periods(_CHUNK, run.options["update_period"])
    began, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < _SECONDS:
        agent.learn(chunk)
        steps += chunk
    return steps / elapsed


def _tried_tables(run: Run) -> float:
    """Return the seeds a second of one core; nothing is written."""
    from ebql.studies.tables.runs import learn_seeds

    learn_seeds(run, run.seeds[:1], 1)  # compiles
    began, done = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < _SECONDS:
        learn_seeds(run, run.seeds[:1], 1)
        done += 1
    return done / elapsed
