"""The short study that ends a reproduction: three deep agents on MinAtar Breakout, one seed each."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from ebql.studies.definition import parse_study
from ebql.studies.model import Study
from ebql.studies.plan import plan
from ebql.studies.runners import local_runner
from ebql.studies.status import statuses
from ebql.studies.sweep import require_finished, sweep

STEPS = 100_000
"""Agent steps of each run: all three take some four minutes on two cores."""
PIECES = 30
"""How often `perform` tells of progress."""

# The longest run first, so that two workers end at about the same time.
_TEXT = """\
agents = ["ebql", "double-dqn", "dqn"]
environments = ["MinAtar/Breakout-v1"]
seeds = [0]
steps = {steps}
evaluation = {{ period = {period} }}
checkpoint_period = 100_000
"""
_BETWEEN_LOOKS = 1.0


def installed() -> bool:
    """Whether the packages are here that the study needs: torch and MinAtar."""
    return all(find_spec(package) is not None for package in ("torch", "minatar"))


def short_study(steps: int = STEPS) -> Study:
    """Return the study, with this many agent steps a run."""
    # The same period for all lengths but very short ones: a longer study goes on with a shorter one's runs.
    period = min(STEPS // 10, max(1, steps // 10))
    return parse_study(_TEXT.format(steps=steps, period=period), "the short study")


def perform(study: Study, folder: Path, progress: Callable[[], None]) -> None:
    """Run what is missing of the study in `folder`; call `progress` once for each of `PIECES` alike."""
    total = sum(run.length for run in study.runs)
    told, next_look = 0, 0.0

    def tick() -> None:
        nonlocal told, next_look
        if time.monotonic() < next_look:
            return
        done = sum(min(status.step, status.run.length) for status in statuses(study, folder))
        while told < PIECES * done // total:
            told += 1
            progress()
        next_look = time.monotonic() + _BETWEEN_LOOKS

    planned = plan(study, folder)
    sweep(study, planned, folder, local_runner(None, study.resources.cpus), tick)
    require_finished(statuses(study, folder))
    for _ in range(told, PIECES):
        progress()
