"""`ebql plan`: what the paper's Atari table costs."""

import os
from collections.abc import Mapping
from typing import Any

import tyro
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table

from ebql.cli.commands.train import agent_types
from ebql.errors import InputError, unknown_name, whole_number
from ebql.paper.atari.plan import WORTHWHILE_STEPS, Cost, Speeds, cost, proposal
from ebql.paper.atari.scores import (
    AGENTS,
    COMMAND_NAMES,
    FRAMES_PER_STEP,
    FULL,
    PRESET,
    Protocol,
    environment_id,
)
from ebql.studies.speed import Speed, measure_speed
from ebql.terminal.console import Console
from ebql.terminal.wording import short

_TARGETS = ("table1",)


def plan(
    target: tyro.conf.Positional[str],
    seconds: float = 60.0,
    game: str = "pong",
    machines: int = 1,
    steps_per_second: float | None = None,
    budget: float | None = None,
    preset: str = PRESET,
    envs: int | None = None,
    threads: int | None = None,
    device: str | None = None,
) -> None:
    """Measure how fast this machine trains, and print how long the paper's Atari table takes at that speed.

    Args:
        target: What to plan: table1.
        seconds: How long to measure, over all agents.
        game: The game to measure on.
        machines: How many machines share the runs, each with one run at a time.
        steps_per_second: Agent steps per second of another machine, such as one with a GPU; prints its cost.
        budget: Hours to spend; prints what fits into them, on the other machine if one is given.
        preset: The preset that the agents are measured with.
        envs: Environments that one run steps together; by default the preset's.
        threads: Threads of one run; by default the preset's.
        device: Where to measure, cpu or cuda; by default the preset's.
    """
    if target not in _TARGETS:
        raise unknown_name("plan", target, _TARGETS)
    _check(machines, steps_per_second, budget)
    agent_types()  # says what to install if torch is missing
    given = {"envs": envs, "threads": threads, "device": device}
    options = {name: value for name, value in given.items() if value is not None}
    console = Console()
    busy = _others_load()
    measured = _measure(game, preset, seconds, options)
    console.print(_speed_table(measured, f"Measured on {game} with {preset}"))
    if busy:
        console.print(busy, highlight=False)

    here: Speeds = {agent: measured[agent].median for agent in AGENTS}
    costs = {"this machine": cost(FULL, here)}
    speeds, where = here, "this machine"
    if machines > 1:
        where = f"{machines} machines like this one"
        costs[where] = cost(FULL, here, machines)
    if steps_per_second is not None:
        speeds = dict.fromkeys(AGENTS, steps_per_second)
        where = (
            f"{'one machine' if machines == 1 else f'{machines} machines'} of {steps_per_second:g} steps/s"
        )
        costs[where] = cost(FULL, speeds, machines)
    console.print(f"\nThe whole table: {_in_words(FULL)}.", highlight=False)
    console.print(_cost_table(costs))
    console.print(
        "Training alone; evaluations add to it: 20 episodes of at most 27,000 steps every million steps.",
        highlight=False,
    )
    if budget is not None:
        _propose(proposal(budget, speeds, machines), where, budget, console)


def _check(machines: int, steps_per_second: float | None, budget: float | None) -> None:
    """Refuse bad options before a minute is spent on measuring."""
    whole_number("machines", machines, 1)
    for name, value in (("steps-per-second", steps_per_second), ("budget", budget)):
        if value is not None and not value > 0:
            raise InputError(f"{name} must be positive, not {value:g}.")


def _others_load() -> str | None:
    """Return a warning if other processes keep the machine busy, else None."""
    if not hasattr(os, "getloadavg"):  # not on Windows
        return None
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load < cores / 2:
        return None
    return (
        f"Other processes were using this machine (load {load:.1f} on {cores} cores): measure again when it "
        "is idle."
    )


def _measure(game: str, preset: str, seconds: float, options: Mapping[str, Any]) -> dict[str, Speed]:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    labels = {name: label for label, name in COMMAND_NAMES.items()}
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("measuring", total=seconds)
        measured = measure_speed(
            list(labels),
            game,
            preset,
            seconds,
            progress=lambda name, spent: bar.update(
                task, advance=spent, description=f"measuring {labels[name]}"
            ),
            **options,
        )
    return {labels[name]: speed for name, speed in measured.items()}


def _speed_table(measured: Mapping[str, Speed], title: str) -> Table:
    table = Table(title=title, box=None, pad_edge=False)
    table.add_column("agent")
    for heading in ("agent steps/s", "frames/s", "lowest – highest", f"hours of a {short(FULL.steps)} run"):
        table.add_column(heading, justify="right")
    for agent, speed in measured.items():
        hours = FULL.steps / speed.median / 3600
        spread = f"{speed.lowest:,.1f} – {speed.highest:,.1f}"
        frames = f"{FRAMES_PER_STEP * speed.median:,.0f}"
        table.add_row(agent, f"{speed.median:,.1f}", frames, spread, f"{hours:,.0f}")
    return table


def _cost_table(costs: Mapping[str, Cost]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("on")
    for heading in ("machine hours", "hours", "days"):
        table.add_column(heading, justify="right")
    for where, found in costs.items():
        table.add_row(where, f"{found.machine_hours:,.0f}", f"{found.hours:,.0f}", f"{found.hours / 24:,.1f}")
    return table


def _in_words(protocol: Protocol) -> str:
    games = f"{len(protocol.games)} game{'s' if len(protocol.games) > 1 else ''}"
    return (
        f"{protocol.runs} runs ({games} × {len(protocol.agents)} agents × {protocol.seeds} seeds) "
        f"of {short(protocol.steps)} agent steps ({short(FRAMES_PER_STEP * protocol.steps)} frames), "
        f"{protocol.agent_steps / 1e6:,.0f}M agent steps in all"
    )


def _propose(found: Cost, where: str, budget: float, console: Console) -> None:
    """Print what fits into the budget, the rule behind it, and a shell loop that runs it."""
    games, agents, seeds, steps = found.protocol
    what = (
        "all of it" if found.protocol.runs == FULL.runs and steps == FULL.steps else _in_words(found.protocol)
    )
    lines = [
        f"\nIn {budget:g} hours, {where} can do {what}; it takes {found.hours:,.1f} hours.",
        "What is cut, in this order: steps, down to "
        f"{short(WORTHWHILE_STEPS)} a run (runs can be resumed); games, starting with the paper's smallest "
        "leads; seeds, down to two; then steps again. All agents stay, since the point is to compare them.",
    ]
    for line in lines:
        console.print(line, highlight=False)
    loop = (
        f"for game in {' '.join(map(environment_id, games))}; do\n"
        f"for agent in {' '.join(COMMAND_NAMES[agent] for agent in agents)}; do\n"
        f"for seed in $(seq 0 {seeds - 1}); do\n"
        f"  ebql train $game --agent $agent --preset {PRESET} --steps {steps} --seed $seed\n"
        "done; done; done"
    )
    console.print(loop, highlight=False, markup=False, soft_wrap=True)
