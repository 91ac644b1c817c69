"""Train DQN, double DQN and EBQL with the presets of classic control and score them, one run after another.

    python results/classic/study.py FOLDER [--only CartPole-v1] [--seeds 20 21 22 23 24]
    python results/classic/study.py FOLDER --keep

Each run has a folder of its own and can be interrupted: the same command continues it. To use two cores,
start the command twice with different environments. A run stops at the first evaluation that reaches its
`stop` score and keeps the agent of its best evaluation. Its score and bias come from 100 greedy episodes that
were not used to choose it. `--keep` adds the finished runs to scores.csv beside this file and renews the
table in README.md. Runs that scores.csv lists are not trained again.
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
    "CartPole-v1": Task(published=500, stop=500, steps=50_000, period=2_500, episodes=500),
    "Acrobot-v1": Task(published=-76.6, stop=-72, steps=100_000, period=5_000, episodes=200),
    "MountainCar-v0": Task(published=-100.8, stop=-99, steps=120_000, period=5_000, episodes=200),
    "LunarLander-v3": Task(published=154.4, stop=200, steps=100_000, period=10_000, episodes=30),
}
AGENTS = ("DQN", "DoubleDQN", "EBQL")
EPISODES = 100
SEEDS = range(20, 25)
FRESH = 1_000_000  # evaluation seeds that no run uses
KEPT = Path(__file__).with_name("scores.csv")
README = KEPT.with_name("README.md")
HEADER = "| environment | RL Zoo's DQN | agent | seeds that reach it | scores | biases |\n"
RUN = ("environment", "agent", "seed")
COLUMNS = (
    *RUN,
    "best_step",
    "score",
    "standard_error",
    "bias",
    "bias_standard_error",
    "reached",
    "commit",
    "date",
)


def kept():
    """Return the rows of scores.csv by environment, agent and seed."""
    if not KEPT.exists():
        return {}
    with KEPT.open(newline="") as file:
        return {tuple(row[name] for name in RUN): row for row in csv.DictReader(file)}


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
    evaluation = best.evaluate(EPISODES, seed=FRESH + seed).to_json()
    write_json(score, {"step": best.steps} | evaluation)
    print(f"{run.name}: {evaluation['evaluation/return']:.1f}, its agent of step {best.steps:,}", flush=True)


def keep(folder):
    """Add the finished runs to scores.csv."""
    rows = kept()
    for score in folder.glob("*/score.json"):
        environment, agent, seed = score.parent.name.rsplit("_", 2)
        found = json.loads(score.read_text())
        made = json.loads((score.parent / "config.json").read_text())
        error = found["evaluation/return_std"] / EPISODES**0.5
        values = (found["evaluation/return"], error, found["bias/mean"], found["bias/standard_error"])
        reached = found["evaluation/return"] >= TASKS[environment].published
        cells = (found["step"], *(f"{v:.4g}" for v in values), reached, made["commit"][:7], made["date"][:10])
        rows[environment, agent, seed] = dict(zip(COLUMNS, (environment, agent, seed, *cells), strict=True))
    with KEPT.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        rows = {key: rows[key] for key in sorted(rows)}
        writer.writerows(rows.values())
    README.write_text(README.read_text().partition(HEADER)[0] + table(rows.values()))
    print(f"{len(rows)} of {len(TASKS) * len(AGENTS) * len(SEEDS)} runs are kept in {KEPT}")


def table(rows):
    """Return the kept runs as a table of Markdown, one line for each environment and agent."""
    lines = [HEADER + "|---|---|---|---|---|---|"]
    for environment, task in TASKS.items():
        for agent in AGENTS:
            own = [row for row in rows if (row["environment"], row["agent"]) == (environment, agent)]
            reached = sum(row["reached"] in (True, "True") for row in own)
            counts = f"{reached} of {len(own)}" if own else "not run"
            scores, biases = (", ".join(row[name] for row in own) for name in ("score", "bias"))
            lines.append(f"| {environment} | {task.published} | {agent} | {counts} | {scores} | {biases} |")
    return "\n".join(lines).replace("-", "−").replace("−−−", "---").replace("−v", "-v") + "\n"


def main():
    """Train what is missing, or keep what is finished."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS), metavar="ENV")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args()
    if chosen.keep:
        keep(chosen.folder)
        return
    done = kept()
    for seed in chosen.seeds:
        for environment in chosen.only:
            for agent in AGENTS:
                if (environment, agent, str(seed)) not in done:
                    train(chosen.folder, environment, agent, seed)


if __name__ == "__main__":
    main()
