"""What a study will cost: the steps that are left, and the hours at measured speeds."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ebql.deep.presets import preset_of
from ebql.experiments.plans import Planned
from ebql.experiments.statuses import speed_of
from ebql.experiments.studies import Run
from ebql.runs import read_metrics

_WARM_UP, _CHUNK = 64, 100
_SECONDS = 2.0


class Speed(NamedTuple):
    """How fast a run is."""

    per_second: float
    """Agent steps, or seeds, a second, one run a core."""
    source: str
    """Where the number comes from, in words."""


def speeds(planned: Sequence[Planned]) -> dict[str, Speed]:
    """Return the speed of each run, by its name.

    From the clock of the study's own runs of the same agent in the same environment, evaluations
    included, if there are any. If not, an agent trains for two seconds, once for each family of
    environments, without evaluations. Tables are tried with a few seeds.
    """
    recorded = _recorded(planned)
    tried: dict[tuple[str, str], Speed] = {}
    found = {}
    for item in planned:
        key = item.run.label, item.run.environment
        family = item.run.label, preset_of(item.run.environment) if item.run.unit == "steps" else key[1]
        if key in recorded:
            found[item.run.name] = Speed(recorded[key], "runs of this study")
            continue
        if family not in tried:
            tried[family] = Speed(_tried(item.run), f"tried for {_SECONDS:.0f} s here, without evaluations")
        found[item.run.name] = tried[family]
    return found


def _recorded(planned: Iterable[Planned]) -> dict[tuple[str, str], float]:
    by_kind: dict[tuple[str, str], list[float]] = {}
    for item in planned:
        speed = _whole_run_speed(item.folder)
        if speed is not None:
            by_kind.setdefault((item.run.label, item.run.environment), []).append(speed)
    return {kind: len(own) / sum(1 / speed for speed in own) for kind, own in by_kind.items()}


def _whole_run_speed(folder: Path) -> float | None:
    path = folder / "timing.jsonl"
    return speed_of([{"step": 0, "seconds": 0.0}, *read_metrics(path)]) if path.exists() else None


def _tried(run: Run) -> float:
    return _tried_training(run) if run.unit == "steps" else _tried_tables(run)


def _tried_training(run: Run) -> float:
    """Return the agent steps a second once a network learns; nothing is written."""
    from ebql.deep.agent import AGENTS

    # Learning starts at once and ε is at its end: most of a run is like that.
    at_once = {
        "learning_starts": _WARM_UP,
        "evaluation_period": 0,
        "epsilon_start": run.options["epsilon_end"],
    }
    agent = AGENTS[run.agent](run.environment, preset=run.preset, **{**run.options, **at_once})
    agent.learn(2 * _WARM_UP)
    began, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < _SECONDS:
        agent.learn(_CHUNK)
        steps += _CHUNK
    return steps / elapsed


def _tried_tables(run: Run) -> float:
    """Return the seeds a second of one core; nothing is written."""
    from ebql.experiments.table_runs import learn_seeds

    learn_seeds(run, run.seeds[:1], 1)  # compiles
    began, done = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < _SECONDS:
        learn_seeds(run, run.seeds[:1], 1)
        done += 1
    return done / elapsed
