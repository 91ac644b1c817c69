"""The short study of a reproduction: three deep agents on MinAtar Breakout, one seed each."""

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
"""Agent steps of each run; all three take about four minutes on two cores."""
PIECES = 30
"""How often `perform` calls `progress`."""

# The longest run is first, so that two workers finish at about the same time.
_TEXT = """\
agents = ["ebql", "double-dqn", "dqn"]
environments = ["MinAtar/Breakout-v1"]
seeds = [0]
steps = {steps}
evaluation = {{ period = {period} }}
checkpoint_period = 100_000
"""
_POLL_SECONDS = 1.0


def installed() -> bool:
    """Return whether torch and MinAtar, which the study needs, are installed."""
    return all(find_spec(package) is not None for package in ("torch", "minatar"))


def short_study(steps: int = STEPS) -> Study:
    """Return the study with this many agent steps per run."""
    # The period depends on the length of very short studies only, so that longer studies can resume the
    # runs of shorter ones.
    period = min(STEPS // 10, max(1, steps // 10))
    return parse_study(_TEXT.format(steps=steps, period=period), "the short study")


def perform(study: Study, folder: Path, progress: Callable[[], None]) -> None:
    """Run what is missing of the study in `folder`; call `progress` `PIECES` times, at equal steps."""
    total = sum(run.length for run in study.runs)
    reported, next_poll = 0, 0.0

    def tick() -> None:
        nonlocal reported, next_poll
        if time.monotonic() < next_poll:
            return
        done = sum(min(status.step, status.run.length) for status in statuses(study, folder))
        while reported < PIECES * done // total:
            reported += 1
            progress()
        next_poll = time.monotonic() + _POLL_SECONDS

    planned = plan(study, folder)
    sweep(study, planned, folder, local_runner(None, study.resources.cpus), tick)
    require_finished(statuses(study, folder))
    for _ in range(reported, PIECES):
        progress()
