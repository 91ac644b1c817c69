"""The hours that table 1 takes at a given speed, and how much of it fits into a budget."""

import heapq
from collections.abc import Mapping
from typing import NamedTuple

from ebql.errors import InputError, whole_number
from ebql.paper.atari.scores import FULL, GAMES, Protocol, lead

Speeds = Mapping[str, float]
"""Agent steps per second of each agent."""

EVALUATION_PERIOD = 1_000_000
"""Agent steps between evaluations; the length of a run is a multiple of it."""
WORTHWHILE_STEPS = 10_000_000
"""A proposal shortens runs below this many agent steps only if nothing else can be cut."""
FEWEST_SEEDS = 2
"""A single seed does not show how much runs of an agent vary."""

GAMES_BY_LEAD = tuple(sorted(GAMES, key=lead, reverse=True))
"""Games by EBQL's lead in the paper: a large lead can be seen with few seeds, so these games come first."""


class Cost(NamedTuple):
    """The hours that a protocol takes on some machines."""

    protocol: Protocol
    machines: int
    machine_hours: float
    """Summed over machines."""
    hours: float
    """Until the last machine has finished; a run stays on its machine."""


def cost(protocol: Protocol, speeds: Speeds, machines: int = 1) -> Cost:
    """Return the cost of a protocol on machines of these speeds that do one run at a time."""
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
    """Return when the last machine finishes if a free machine always takes the longest job left."""
    free_at = [0.0] * min(machines, max(len(durations), 1))
    for duration in sorted(durations, reverse=True):
        heapq.heappush(free_at, heapq.heappop(free_at) + duration)
    return max(free_at)


def proposal(hours: float, speeds: Speeds, machines: int = 1) -> Cost:
    """Return the part of the table that fits into these hours.

    All three agents are kept, because the table compares them. Runs are shortened first, down to
    `WORTHWHILE_STEPS`: a short run can be resumed later. Then games are dropped, those with the smallest lead
    in the paper first: a few games with all seeds tell more than many with too few. Then seeds are dropped,
    down to two. Finally runs are shortened further.
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
    """Return the largest run length, in whole evaluation periods, that fits into these hours."""
    one_period = cost(wanted._replace(steps=EVALUATION_PERIOD), speeds, machines).hours
    periods = int(hours / one_period * (1 + 1e-12))  # an exact fit must not fail by rounding
    return min(periods * EVALUATION_PERIOD, wanted.steps)


def _checked(speed: float) -> float:
    if not speed > 0:
        raise InputError(f"steps-per-second must be positive, not {speed:g}.")
    return speed
