"""Train DQN, double DQN and EBQL with the presets of classic control and score them, one run after another.

    python results/classic/study.py FOLDER [--only CartPole-v1] [--seeds 0 1 2 3 4]
    python results/classic/study.py FOLDER --summary results/classic/scores.csv

Each run has a folder of its own and can be interrupted: the same command continues it. To use two cores, start
the command twice with different environments. A run keeps the agent with the best evaluation (20 episodes
every 5,000 steps). Its score and bias, and those of the last agent, come from 100 greedy episodes that were
not used to choose it.
"""

import argparse
import csv
import json
from pathlib import Path

import ebql
from ebql.deep.training.callbacks import KeepBest

STEPS = {"CartPole-v1": 50_000, "Acrobot-v1": 100_000, "MountainCar-v0": 120_000, "LunarLander-v3": 100_000}
AGENTS = ("DQN", "DoubleDQN", "EBQL")
EPISODES = 100
FRESH = 1_000_000  # evaluation seeds that no run uses
MEASURES = ("score", "standard_error", "bias", "bias_standard_error")
COLUMNS = (
    "environment",
    "agent",
    "seed",
    "steps",
    "best_step",
    *MEASURES,
    *(f"last_{name}" for name in MEASURES),
)


def train(folder, environment, agent, seed):
    """Train or continue one run, then write the scores of its best and its last agent beside it."""
    run = folder / f"{environment}_{agent}_{seed}"
    scores = run / "scores.json"
    if scores.exists():
        return
    kind = getattr(ebql, agent)
    if run.exists():
        last = kind.resume(run, callback=KeepBest())
    else:
        last = kind(environment, seed=seed, evaluation_period=5_000).learn(
            STEPS[environment], out=run, callback=KeepBest()
        )
    best = kind.load(run / "best.safetensors")
    scores.write_text(
        json.dumps(
            {"best_step": best.steps}
            | {
                name: agent.evaluate(EPISODES, seed=FRESH + seed).to_json()
                for name, agent in (("best", best), ("last", last))
            }
        )
    )
    print(run.name, scores.read_text()[:200], flush=True)


def summarise(folder, path):
    """Write one row for each finished run."""
    with Path(path).open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for scores in sorted(folder.glob("*/scores.json")):
            environment, agent, seed = scores.parent.name.rsplit("_", 2)
            found = json.loads(scores.read_text())
            rows.writerow(
                [
                    environment,
                    agent,
                    seed,
                    STEPS[environment],
                    found["best_step"],
                    *measures(found["best"]),
                    *measures(found["last"]),
                ]
            )


def measures(evaluation):
    """Return score, its standard error, bias and its standard error, as text."""
    error = evaluation["evaluation/return_std"] / EPISODES**0.5
    values = (
        evaluation["evaluation/return"],
        error,
        evaluation["bias/mean"],
        evaluation["bias/standard_error"],
    )
    return ["" if value is None else f"{value:.4g}" for value in values]


def main():
    """Train what is missing, or write the summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), metavar="ENV")
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
