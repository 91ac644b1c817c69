"""How fast the tables learn.

Command: python benchmarks/tabular.py [--out FILE.json]

The paper's whole tabular experiment (7 agents, 50 seeds, 5000 episodes) runs compiled; a plain-Python
statement of the same algorithm runs beside it, alternating, in the same process on the same random
numbers. Speeds are in updates per second; ratios of one run can be trusted more than either speed.
"""

import argparse
import time
from statistics import median

from rich.console import Console
from rich.table import Table

from ebql.environments import chain, meta_chain
from ebql.experiments.chains import AGENTS, EPISODES, SEEDS
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

    table = Table("agent", "plain Python", "compiled, 1 thread", "ratio", "compiled, all cores", "ratio")
    rows = []
    for agent in AGENTS:
        rounds = [
            (plain_speed(agent), compiled_speed(agent, threads=1), compiled_speed(agent))
            for _ in range(ROUNDS)
        ]
        plain, one, every = (median(column) for column in zip(*rounds, strict=True))
        ratio_one, ratio_every = (median(r[i] / r[0] for r in rounds) for i in (1, 2))
        rows.append({"agent": agent.label, "plain": plain, "one_thread": one, "all_cores": every})
        rows[-1] |= {"ratio_one_thread": ratio_one, "ratio_all_cores": ratio_every}
        table.add_row(
            agent.label,
            f"{plain:,.0f}",
            f"{one:,.0f}",
            f"{ratio_one:.0f}",
            f"{every:,.0f}",
            f"{ratio_every:.0f}",
        )
    results["agents"] = rows
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
