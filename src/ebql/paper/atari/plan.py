"""What table 1 costs at a given speed, and how much of it fits a budget. Arithmetic only."""

import heapq
from collections.abc import Mapping
from typing import NamedTuple

from ebql.errors import InputError, whole_number
from ebql.paper.atari.scores import FULL, GAMES, Protocol, lead

Speeds = Mapping[str, float]
"""Agent steps a second of each agent."""

EVALUATION_PERIOD = 1_000_000
"""Agent steps between two evaluations of the protocol: a run's length is a multiple of it."""
WORTHWHILE_STEPS = 10_000_000
"""Agent steps that a proposal keeps as long as it can cut elsewhere: ten evaluations past exploration."""
FEWEST_SEEDS = 2
"""With a single seed nothing shows how much runs of one agent differ."""

GAMES_BY_LEAD = tuple(sorted(GAMES, key=lead, reverse=True))
"""The order in which a proposal takes games: where the paper has EBQL farthest ahead, few seeds can tell."""


class Cost(NamedTuple):
    """What a protocol takes on some machines."""

    protocol: Protocol
    machines: int
    machine_hours: float
    """Summed over machines."""
    hours: float
    """Until the last machine is done; a run stays on its machine."""


def cost(protocol: Protocol, speeds: Speeds, machines: int = 1) -> Cost:
    """Return what a protocol takes on machines of these speeds, each with one run at a time."""
    machines = whole_number("machines", machines, 1)
    hours = {agent: protocol.steps / _checked(speeds[agent]) / 3600 for agent in protocol.agents}
    copies = len(protocol.games) * protocol.seeds
    return Cost(
        protocol,
        machines,
        copies * sum(hours.values()),
        makespan([run for run in hours.values() for _ in range(copies)], machines),
    )


def makespan(durations: list[float], machines: int) -> float:
    """Return when the last machine is done if each takes the longest job left as soon as it is free."""
    free_at = [0.0] * min(machines, max(len(durations), 1))
    for duration in sorted(durations, reverse=True):
        heapq.heappush(free_at, heapq.heappop(free_at) + duration)
    return max(free_at)


def proposal(hours: float, speeds: Speeds, machines: int = 1) -> Cost:
    """Return the part of the table that fits into these hours.

    All three agents stay: they are only worth comparing side by side. First the runs get shorter, down
    to `WORTHWHILE_STEPS`: a short run is the beginning of the long one, and can be resumed. Then games
    go, the paper's smallest leads first: a row with all its seeds is a result, many rows of too few
    seeds are none. Then seeds go, down to two; last of all the runs get shorter still.
    """
    if not hours > 0:
        raise InputError(f"budget must be positive, not {hours:g} hours.")
    for least_steps in (WORTHWHILE_STEPS, EVALUATION_PERIOD):
        for seeds in range(FULL.seeds, FEWEST_SEEDS - 1, -1):
            for n_games in range(len(GAMES), 0, -1):
                wanted = FULL._replace(games=GAMES_BY_LEAD[:n_games], seeds=seeds)
                steps = _steps_that_fit(wanted, hours, speeds, machines)
                if steps >= least_steps:
                    return cost(wanted._replace(steps=steps), speeds, machines)
    least = FULL._replace(games=GAMES_BY_LEAD[:1], seeds=FEWEST_SEEDS, steps=EVALUATION_PERIOD)
    needed = cost(least, speeds, machines).hours
    raise InputError(
        f"Nothing fits into {hours:g} hours: three agents on one game with {FEWEST_SEEDS} seeds and "
        f"{EVALUATION_PERIOD:,} steps take {needed:.1f}."
    )


def _steps_that_fit(wanted: Protocol, hours: float, speeds: Speeds, machines: int) -> int:
    """Return the longest runs, in whole evaluation periods, with which a protocol ends in time."""
    one_period = cost(wanted._replace(steps=EVALUATION_PERIOD), speeds, machines).hours
    periods = int(hours / one_period * (1 + 1e-12))  # a budget that fits exactly must not miss by rounding
    return min(periods * EVALUATION_PERIOD, wanted.steps)


def _checked(speed: float) -> float:
    if not speed > 0:
        raise InputError(f"steps-per-second must be positive, not {speed:g}.")
    return speed
