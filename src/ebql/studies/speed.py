"""Measure how fast agents train on this machine."""

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
"""Measurements of each agent; agents take turns, so that other load on the machine affects all alike."""
CHUNK = 8
"""The smallest number of agent steps between two readings of the clock."""
REPLAY_SIZE, WARM_UP = 2_000, 64
"""A small replay and an early start of learning; neither changes the speed."""


class Speed(NamedTuple):
    """The speed of one agent over all rounds, in agent steps per second."""

    median: float
    lowest: float
    highest: float


def whole_periods(steps: int, update_period: int) -> int:
    """Return the smallest multiple of the update period that is at least `steps`.

    Every stretch of this length contains the same number of updates, even if they come in large blocks.
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
    """Train agents, given by their names on the command line, for about `seconds` in total.

    `options` override the preset. The replay is small, learning starts almost at once, ε has its final value,
    and there are no evaluations, so the speed is that of most of a long run. `progress` is called after each
    chunk with the agent and the seconds spent.
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
    return {name: Speed(median(by_round), min(by_round), max(by_round)) for name, by_round in rates.items()}


def _learner(name: str, environment: str, preset: str, options: Mapping[str, Any]) -> "Agent":
    from ebql.deep.agents import AGENTS  # torch is an extra

    config = preset_config(config_type(name), preset)
    late_in_training: dict[str, Any] = {
        "replay_size": REPLAY_SIZE,
        "learning_starts": WARM_UP,
        "epsilon_start": config.epsilon_end,
        "evaluation_period": 0,
    }
    return AGENTS[config.name](environment, preset=preset, **(late_in_training | dict(options)))


def _rate(
    learner: "Agent", seconds: float, clock: Callable[[], float], progress: Callable[[float], None]
) -> float:
    """Train for at least this many seconds; return the agent steps per second."""
    before, spent = learner.steps, 0.0
    chunk = whole_periods(CHUNK, learner.config.update_period)
    while spent < seconds:
        began = clock()
        learner.learn(chunk)
        took = clock() - began
        spent += took
        progress(took)
    return (learner.steps - before) / spent
