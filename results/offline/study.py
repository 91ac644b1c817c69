"""The study of learning from data: five agents learn from the replay of a DQN that was stopped halfway.

    python results/offline/study.py DIR            train; finished runs are kept, so repeat it to continue
    python results/offline/study.py DIR --summary  write runs.csv and summary.csv beside this file

Every agent and seed learns from the same data of its environment. So seeds differ in initial weights and
minibatches, not in the data.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ebql.deep.agents import AGENTS
from ebql.estimators.intervals import interval_ends, over_seeds
from ebql.runs import read_metrics, write_csv

SEEDS = range(5)
AGENT_NAMES = ("dqn", "double-dqn", "ebql", "maxmin-dqn", "redq")


class World(NamedTuple):
    """An environment, how its data is collected, and how agents learn from it."""

    environment: str
    data_steps: int
    """Agent steps after which the collecting DQN is stopped, when it plays well but not best."""
    collecting: dict[str, Any]
    """Options of the collecting DQN, apart from its preset."""
    updates: int
    learning: dict[str, Any]
    """Options of the agents that learn from the data; target periods count updates."""


WORLDS = (
    World("CartPole-v1", 10_000, {}, 5_000, {"hidden": (64, 64), "batch_size": 64, "target_period": 100}),
    World(
        "MinAtar/Breakout-v1",
        30_000,
        {"hidden": (64,), "epsilon_steps": 15_000, "learning_starts": 1_000},
        3_000,
        {"hidden": (64,), "target_period": 100},
    ),
)
COMMON: dict[str, Any] = {"replay_size": 50_000, "evaluation_episodes": 10}


def folder_of(base: Path, world: World, *name: object) -> Path:
    """Return a run's folder below `base`."""
    return base / "-".join(map(str, (world.environment.partition("-")[0].replace("/", "-").lower(), *name)))


def train(base: Path) -> None:
    """For each environment, collect the data and train every agent, seed by seed."""
    for world in WORLDS:
        out = folder_of(base, world, "data")
        options = {**COMMON, **world.collecting, "evaluation_period": world.data_steps, "seed": 1000}
        if (out / "config.json").exists():
            AGENTS["dqn"].resume(out)
        else:
            AGENTS["dqn"](world.environment, **options).learn(world.data_steps, out=out)
        for seed in SEEDS:
            for name in AGENT_NAMES:
                out = folder_of(base, world, name, seed)
                if (out / "config.json").exists():
                    AGENTS[name].resume(out)
                    continue
                options = {**COMMON, **world.learning, "evaluation_period": world.updates, "seed": seed}
                agent = AGENTS[name](world.environment, **options)
                agent.learn_offline(folder_of(base, world, "data"), world.updates, out=out)


def last_evaluation(folder: Path) -> dict[str, Any]:
    """Return the last evaluation of a run."""
    return [record for record in read_metrics(folder / "metrics.jsonl") if "evaluation/return" in record][-1]


def summarise(base: Path) -> None:
    """Write the last evaluation of every finished run, and means over seeds with Student's 95% intervals."""
    columns = ("evaluation/return", "bias/mean", "bias/normalised", "bias/value", "bias/discounted_return")
    runs, summary = [], []
    for world in WORLDS:
        data = last_evaluation(folder_of(base, world, "data"))
        runs.append((world.environment, "data (dqn)", 1000, data["step"], *(data[name] for name in columns)))
        for name in AGENT_NAMES:
            found = []
            for seed in SEEDS:
                folder = folder_of(base, world, name, seed)
                record = last_evaluation(folder) if (folder / "metrics.jsonl").exists() else None
                if record is not None and record["step"] == world.updates:
                    found.append([record[column] for column in columns])
                    runs.append((world.environment, name, seed, record["step"], *found[-1]))
            if not found:
                continue
            scores, biases = np.array(found, np.float64)[:, :2].T
            row: list[object] = [world.environment, name, len(found)]
            for values in (scores, biases):
                mean, half_width = map(float, over_seeds(values))
                row += [mean, *interval_ends(mean, half_width)]
            summary.append(row)
    here = Path(__file__).parent
    write_csv(here / "runs.csv", ("environment", "agent", "seed", "step", *columns), runs)
    names = ("score", "score_low", "score_high", "bias", "bias_low", "bias_high")
    write_csv(here / "summary.csv", ("environment", "agent", "seeds", *names), summary)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    (summarise if given.summary else train)(given.folder)
