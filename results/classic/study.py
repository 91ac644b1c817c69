"""Train DQN, double DQN and EBQL with the presets of classic control and score them, one run after another.

    python results/classic/study.py FOLDER [--only CartPole-v1] [--seeds 0 1 2 3 4]
    python results/classic/study.py FOLDER --summary results/classic/scores.csv

Each run has a folder of its own and can be interrupted: the same command continues it. To use two cores,
start the command twice with different environments. A run stops at the first evaluation that reaches its
`stop` score and keeps the agent of its best evaluation. Its score and bias come from 100 greedy episodes that
were not used to choose it.
"""

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path

import ebql
from ebql.deep import KeepBest, StopAtScore
from ebql.runs import write_json


@dataclass(frozen=True)
class Task:
    """How long agents train, how they are evaluated meanwhile, and RL Zoo's score."""

    published: float
    """Score of RL Zoo's DQN."""
    stop: float
    """Mean return of an evaluation that ends the run: above RL Zoo's, as the best of several is lucky."""
    steps: int
    """Agent steps after which the run ends in any case: RL Zoo's number."""
    period: int
    """Agent steps between evaluations."""
    episodes: int
    """Episodes of an evaluation."""


TASKS = {
    "CartPole-v1": Task(published=500, stop=500, steps=50_000, period=5_000, episodes=50),
    "Acrobot-v1": Task(published=-76.6, stop=-73, steps=100_000, period=10_000, episodes=50),
    "MountainCar-v0": Task(published=-100.8, stop=-99, steps=120_000, period=10_000, episodes=50),
    "LunarLander-v3": Task(published=154.4, stop=200, steps=100_000, period=10_000, episodes=20),
}
AGENTS = ("DQN", "DoubleDQN", "EBQL")
EPISODES = 100
FRESH = 1_000_000  # evaluation seeds that no run uses
COLUMNS = (
    "environment",
    "agent",
    "seed",
    "steps",
    "score",
    "standard_error",
    "bias",
    "bias_standard_error",
    "reached",
)


def train(folder, environment, agent, seed):
    """Train or continue one run, then write the score of its best agent beside it."""
    run = folder / f"{environment}_{agent}_{seed}"
    score = run / "score.json"
    if score.exists():
        return
    kind, task = getattr(ebql, agent), TASKS[environment]
    callbacks = [KeepBest(), StopAtScore(task.stop)]
    if run.exists():
        kind.resume(run, callback=callbacks)
    else:
        options = {"evaluation_period": task.period, "evaluation_episodes": task.episodes}
        kind(environment, seed=seed, **options).learn(task.steps, out=run, callback=callbacks)
    best = kind.load(run / "best.safetensors")
    write_json(score, {"step": best.steps} | best.evaluate(EPISODES, seed=FRESH + seed).to_json())
    print(run.name, score.read_text()[:120], flush=True)


def summarise(folder, path):
    """Write one row for each finished run."""
    with Path(path).open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for score in sorted(folder.glob("*/score.json")):
            environment, agent, seed = score.parent.name.rsplit("_", 2)
            found = json.loads(score.read_text())
            error = found["evaluation/return_std"] / EPISODES**0.5
            values = (found["evaluation/return"], error, found["bias/mean"], found["bias/standard_error"])
            reached = found["evaluation/return"] >= TASKS[environment].published
            rows.writerow([environment, agent, seed, found["step"], *(f"{v:.4g}" for v in values), reached])


def main():
    """Train what is missing, or write the summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), metavar="ENV")
    parser.add_argument("--seeds", nargs="+", type=int, default=range(5))
    parser.add_argument("--summary", metavar="CSV")
    chosen = parser.parse_args()
    if chosen.summary:
        summarise(chosen.folder, chosen.summary)
        return
    for seed in chosen.seeds:
        for environment in chosen.only:
            for agent in AGENTS:
                train(chosen.folder, environment, agent, seed)


if __name__ == "__main__":
    main()
