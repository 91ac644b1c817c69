"""How long the rest of a study will take, from measured speeds."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ebql.deep.config.presets import preset_of
from ebql.runs import is_timing, read_intact
from ebql.studies.model import Run
from ebql.studies.plan import Planned
from ebql.studies.speed import whole_periods
from ebql.studies.status import speed_of
from ebql.studies.tables.runs import learn_seeds

Key = tuple[str, str]

_WARM_UP_STEPS, _CHUNK_STEPS = 64, 100
_TRIAL_SECONDS = 2.0


class Speed(NamedTuple):
    """How fast a run is."""

    per_second: float
    """Agent steps (tabular runs: seeds) per second, with one run per core."""
    source: str
    """How the speed was measured, in words."""


def speeds(
    planned: Sequence[Planned], trying: Callable[[Run, int, int], None] = lambda _run, _number, _of: None
) -> dict[str, Speed]:
    """Return the speed of each run by its name, from the closest measurement available.

    That is the timing of the study's runs of the same agent in the same environment, evaluations included;
    or else of its runs in the same family of environments. Without either, a trial measures the speed once
    for each agent and family: two seconds of training without evaluations, or of single seeds for tables.
    `trying` is called before each trial with the run, the trial's number from 1 on, and their total.
    """
    by_environment, by_family = _recorded(planned, _environment_key), _recorded(planned, _family_key)
    unmeasured: dict[Key, Run] = {}
    for item in planned:
        if _environment_key(item.run) not in by_environment and _family_key(item.run) not in by_family:
            unmeasured.setdefault(_family_key(item.run), item.run)
    by_trial: dict[Key, Speed] = {}
    for number, (family, run) in enumerate(unmeasured.items(), 1):
        trying(run, number, len(unmeasured))
        by_trial[family] = _trial(run)
    result = {}
    for item in planned:
        environment, family = _environment_key(item.run), _family_key(item.run)
        if environment in by_environment:
            result[item.run.name] = Speed(by_environment[environment], "runs of this study")
        elif family in by_family:
            result[item.run.name] = Speed(by_family[family], "runs of this study in similar environments")
        else:
            result[item.run.name] = by_trial[family]
    return result


def _environment_key(run: Run) -> Key:
    return run.label, run.environment


def _family_key(run: Run) -> Key:
    return run.label, preset_of(run.environment) if run.unit == "steps" else run.environment


def _recorded(planned: Iterable[Planned], key: Callable[[Run], Key]) -> dict[Key, float]:
    """Return the harmonic mean of the recorded speeds of the runs with each key."""
    by_key: dict[Key, list[float]] = {}
    for item in planned:
        speed = _whole_run_speed(item.folder)
        if speed is not None:
            by_key.setdefault(key(item.run), []).append(speed)
    return {key: len(own) / sum(1 / speed for speed in own) for key, own in by_key.items()}


def _whole_run_speed(folder: Path) -> float | None:
    return speed_of([{"step": 0, "seconds": 0.0}, *read_intact(folder / "timing.jsonl", is_timing)])


def _trial(run: Run) -> Speed:
    source = f"a trial of {_TRIAL_SECONDS:.0f} s here"
    if run.unit == "seeds":
        return Speed(_trial_of_tables(run), source)
    return Speed(_trial_of_training(run), f"{source}, without evaluations")


def _trial_of_training(run: Run) -> float:
    """Return the agent steps per second of a network that learns; nothing is written."""
    from ebql.deep.agents import AGENTS  # imports torch, which studies of tables can do without

    late_in_training = {  # learning starts at once, and ε has its final value, as in most of a run
        "learning_starts": _WARM_UP_STEPS,
        "evaluation_period": 0,
        "epsilon_start": run.options["epsilon_end"],
    }
    agent = AGENTS[run.agent](run.environment, preset=run.preset, **{**run.options, **late_in_training})
    agent.learn(2 * _WARM_UP_STEPS)
    chunk = whole_periods(_CHUNK_STEPS, run.options["update_period"])
    began, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < _TRIAL_SECONDS:
        agent.learn(chunk)
        steps += chunk
    return steps / elapsed


def _trial_of_tables(run: Run) -> float:
    """Return the seeds per second of one core; nothing is written."""
    learn_seeds(run, run.seeds[:1], 1)  # compile
    began, done = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < _TRIAL_SECONDS:
        learn_seeds(run, run.seeds[:1], 1)
        done += 1
    return done / elapsed
