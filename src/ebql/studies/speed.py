"""How fast agents really train on this machine."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from ebql.deep.config.agents import config_type
from ebql.deep.config.presets import preset_config
from ebql.errors import InputError

if TYPE_CHECKING:
    from ebql.deep.agent import Agent

ROUNDS = 4
"""Windows of each agent; they alternate, so that a busy minute of the machine strikes all agents alike."""
CHUNK = 8
"""The fewest agent steps between two looks at the clock."""
REPLAY_SIZE, WARM_UP = 2_000, 64
"""A replay that needs no memory to speak of, and the steps before updates begin: their cost is the same."""


class Speed(NamedTuple):
    """What the windows of one agent measured, in agent steps a second."""

    median: float
    lowest: float
    highest: float


def whole_periods(steps: int, update_period: int) -> int:
    """Return the smallest multiple of the update period that is at least `steps`.

    Pieces of this length hold equally many updates, also when those come in large blocks.
    """
    return -(-steps // update_period) * update_period


def measure_speed(
    agents: Sequence[str],
    environment: str,
    preset: str,
    seconds: float,
    *,
    progress: Callable[[str, float], None] = lambda _agent, _seconds: None,
    clock: Callable[[], float] = time.perf_counter,
    **options: Any,
) -> dict[str, Speed]:
    """Train agents (by their names on the command line) for about `seconds` in all.

    The options are the preset's, over which `options` go, but for a small replay, learning from almost
    the first step, exploration as at a run's end, and no evaluations: the speed of nearly all of a long
    run. `progress` hears of each piece: the agent, and the seconds spent.
    """
    if not seconds > 0:
        raise InputError(f"seconds must be positive, not {seconds:g}.")
    learners = {name: _learner(name, environment, preset, options) for name in agents}
    for name, learner in learners.items():
        progress(name, 0.0)
        learner.learn(WARM_UP + CHUNK)
    rates: dict[str, list[float]] = {name: [] for name in agents}
    window = seconds / (ROUNDS * len(agents))
    for _ in range(ROUNDS):
        for name, learner in learners.items():
            rates[name].append(_rate(learner, window, clock, partial(progress, name)))
    return {name: Speed(median(own), min(own), max(own)) for name, own in rates.items()}


def _learner(name: str, environment: str, preset: str, options: Mapping[str, Any]) -> "Agent":
    from ebql.deep.agents import AGENTS  # torch is an extra

    config = preset_config(config_type(name), preset)
    as_at_the_end: dict[str, Any] = {
        "replay_size": REPLAY_SIZE,
        "learning_starts": WARM_UP,
        "epsilon_start": config.epsilon_end,
        "evaluation_period": 0,
    }
    return AGENTS[config.name](environment, preset=preset, **(as_at_the_end | dict(options)))


def _rate(
    learner: "Agent", seconds: float, clock: Callable[[], float], progress: Callable[[float], None]
) -> float:
    """Train for at least this long; return the agent steps a second."""
    before, spent = learner.steps, 0.0
    chunk = whole_periods(CHUNK, learner.config.update_period)
    while spent < seconds:
        began = clock()
        learner.learn(chunk)
        took = clock() - began
        spent += took
        progress(took)
    return (learner.steps - before) / spent
