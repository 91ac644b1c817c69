"""How fast the tables learn.

Command: python benchmarks/tabular.py [--out FILE.json]

The paper's whole tabular experiment (7 agents, 50 seeds, 5000 episodes) runs compiled. Beside it,
alternating in the same process, run two statements of the same algorithm in Python: one on lists, tuned for
the interpreter, which draws the same random numbers; and one on NumPy arrays, as it is usually written.
Speeds are in updates per second; ratios of one run can be trusted more than either speed.
"""

import argparse
import time
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from ebql.environments import chain, meta_chain
from ebql.paper.chains.curves import AGENTS, EPISODES, SEEDS
from ebql.runs import provenance, write_json
from ebql.tabular import EBQL, Agent, Schedule, inverse_visits, learn
from ebql.tabular.reference import learn_plainly

RATES = {"epsilon": Schedule(0.1), "learning_rate": inverse_visits(0.8)}
PLAIN_EPISODES = 1000
ROUNDS = 5


def compiled_speed(agent: Agent, *, seeds: int = SEEDS, threads: int | None = None, world=None) -> float:
    start = time.perf_counter()
    history = learn(
        world or meta_chain(),
        agent,
        episodes=EPISODES,
        seeds=seeds,
        threads=threads,
        record_every=25,
        **RATES,
    )
    return history.updates / (time.perf_counter() - start)


def plain_speed(agent: Agent) -> float:
    world = meta_chain()
    updates = learn(world, agent, episodes=PLAIN_EPISODES, seeds=[0], **RATES).updates
    start = time.perf_counter()
    learn_plainly(world, agent, episodes=PLAIN_EPISODES, seed=0, **RATES)
    return updates / (time.perf_counter() - start)


def learn_with_arrays(agent: Agent, episodes: int) -> int:
    """The algorithm on the Meta-Chain as one writes it with NumPy; return the number of updates."""
    world, rng = meta_chain(), np.random.default_rng(0)
    q = np.zeros((agent.ensemble_size, world.n_states, world.n_actions))
    counts, updates = np.zeros_like(q, dtype=int), 0
    next_states = world.transitions.argmax(-1)

    def pick(values):
        return rng.choice(np.flatnonzero(values == values.max()))

    for _ in range(episodes):
        state = rng.choice(world.n_states, p=world.start)
        while not world.terminals[state]:
            n = world.action_counts[state]
            action = rng.integers(n) if rng.random() < 0.1 else pick(q[:, state, :n].mean(0))
            following = next_states[state, action]
            reward = rng.normal(
                world.reward_means[state, action, following], world.reward_stds[state, action, following]
            )
            member, value = rng.integers(agent.ensemble_size), 0.0
            if not world.terminals[following]:
                values = q[:, following, : world.action_counts[following]]
                if agent.ensemble_size == 1:
                    value = values.max()
                else:
                    value = np.delete(values[:, pick(values[member])], member).mean()
            counts[member, state, action] += 1
            step = counts[member, state, action] ** -0.8
            q[member, state, action] += step * (reward + value - q[member, state, action])
            state, updates = following, updates + 1
    return updates


def array_speed(agent: Agent) -> float:
    start = time.perf_counter()
    updates = learn_with_arrays(agent, PLAIN_EPISODES // 4)
    return updates / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="also write the measurements to this JSON file")
    arguments = parser.parse_args()
    console = Console()
    compiled_speed(AGENTS[0], seeds=1)
    compiled_speed(AGENTS[1], seeds=1)
    results: dict[str, object] = {"made_by": provenance()}

    start = time.perf_counter()
    for agent in AGENTS:
        compiled_speed(agent)
    results["paper_experiment_seconds"] = time.perf_counter() - start
    console.print(
        f"The paper's tabular experiment, {len(AGENTS)} agents x {SEEDS} seeds x {EPISODES} episodes: "
        f"{results['paper_experiment_seconds']:.2f} s"
    )

    columns = ("lists", "arrays", "compiled, 1 thread", "compiled, all cores")
    table = Table("agent", *columns, "all cores / lists", "all cores / arrays")
    results["agents"] = []
    for agent in AGENTS:
        rounds = [
            (plain_speed(agent), array_speed(agent), compiled_speed(agent, threads=1), compiled_speed(agent))
            for _ in range(ROUNDS)
        ]
        speeds = [median(column) for column in zip(*rounds, strict=True)]
        ratios = [median(r[3] / r[i] for r in rounds) for i in (0, 1)]
        results["agents"].append(
            {"agent": agent.label, **dict(zip(columns, speeds, strict=True))}
            | {"over_lists": ratios[0], "over_arrays": ratios[1]}
        )
        table.add_row(agent.label, *(f"{x:,.0f}" for x in speeds), *(f"{x:.0f}" for x in ratios))
    console.print(table)

    growth = Table("what grows", "value", "updates/s, 1 thread")
    results["growth"] = []
    cases = [("members K", size, EBQL(size), {}) for size in (2, 5, 10, 25, 50, 100)]
    cases += [("seeds", seeds, EBQL(10), {"seeds": seeds}) for seeds in (1, 10, 100, 1000)]
    cases += [("actions in B", n, EBQL(10), {"world": chain(0.0, actions=n)}) for n in (2, 10, 50, 250)]
    for what, value, agent, settings in cases:
        speed = median(compiled_speed(agent, threads=1, **settings) for _ in range(3))
        results["growth"].append({"what": what, "value": value, "updates_per_second": speed})
        growth.add_row(what, str(value), f"{speed:,.0f}")
    console.print(growth)
    if arguments.out:
        write_json(arguments.out, results)


if __name__ == "__main__":
    main()
