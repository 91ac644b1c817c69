"""Our agents and Stable-Baselines3's DQN on environments of one's own: python compare.py SCORES.csv.

Every run has its line in the file; run the command again to go on with the ones that are missing. `--summary`
prints the table of the documentation.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tasks import TASKS

import ebql

SEEDS, STEPS, EPISODES = range(5), 15_000, 100
# What our agents use by default in an environment of one's own, in the words of Stable-Baselines3.
OUR_VALUES: dict[str, Any] = {
    "learning_rate": 5e-4,
    "buffer_size": 50_000,
    "learning_starts": 1_000,
    "target_update_interval": 1_000,
    "exploration_fraction": 10_000 / STEPS,
    "batch_size": 32,
    "train_freq": 4,
    "gradient_steps": 1,
    "exploration_final_eps": 0.05,
    "max_grad_norm": 10,
    "gamma": 0.99,
    "policy_kwargs": {"net_arch": [64, 64]},
}
COLUMNS = ("task", "agent", "seed", "return", "bias", "discounted_return", "seconds")


def ours(kind: Any, make: Any, seed: int) -> Any:
    """Train one of our agents at its defaults."""
    return kind(make, seed=seed, evaluation_period=0).learn(STEPS)


def theirs(options: dict[str, Any], make: Any, seed: int) -> Any:
    """Train DQN of Stable-Baselines3."""
    from stable_baselines3 import DQN

    return DQN("MlpPolicy", make(), seed=seed, device="cpu", **options).learn(STEPS)


AGENTS: dict[str, Callable[[Any, int], Any]] = {
    "EBQL": lambda make, seed: ours(ebql.EBQL, make, seed),
    "DQN": lambda make, seed: ours(ebql.DQN, make, seed),
    "SB3 DQN": lambda make, seed: theirs({}, make, seed),
    "SB3 DQN, our values": lambda make, seed: theirs(OUR_VALUES, make, seed),
}


def mean_return(agent: Any, make: Any) -> float:
    """Return the mean return of greedy episodes, the same ones for all agents."""
    environment, returns = make(), []
    for episode in range(EPISODES):
        observation, _ = environment.reset(seed=10_000 + episode)
        total, over = 0.0, False
        while not over:
            action, _ = agent.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = environment.step(int(action))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def run(task: str, agent: str, seed: int) -> dict[str, Any]:
    """Train and measure one agent."""
    start = time.process_time()
    trained = AGENTS[agent](TASKS[task], seed)
    seconds = time.process_time() - start
    bias = ebql.measure_bias(trained, TASKS[task], episodes=20)
    values = (
        task,
        agent,
        seed,
        mean_return(trained, TASKS[task]),
        bias.mean,
        bias.discounted_return,
        seconds,
    )
    return dict(zip(COLUMNS, values, strict=True))


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines of the file, if there is one."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def summary(rows: list[dict[str, str]]) -> str:
    """Return a table of mean returns with the lowest and the highest seed, and of mean biases."""
    lines = ["| task | agent | seeds | return (lowest to highest) | bias |", "|---|---|---|---|---|"]
    for task in TASKS:
        for agent in AGENTS:
            chosen = [row for row in rows if (row["task"], row["agent"]) == (task, agent)]
            if not chosen:
                continue
            scores, biases = ([float(row[name]) for row in chosen] for name in ("return", "bias"))
            spread = f"{np.mean(scores):.1f} ({min(scores):.1f} to {max(scores):.1f})"
            lines.append(f"| {task} | {agent} | {len(chosen)} | {spread} | {np.mean(biases):+.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--summary", action="store_true")
    wanted = parser.parse_args()
    if wanted.summary:
        print(summary(read(wanted.scores)))
        return
    torch.set_num_threads(1)
    done = {(row["task"], row["agent"], row["seed"]) for row in read(wanted.scores)}
    for seed in wanted.seeds:
        for task in TASKS:
            for agent in AGENTS:
                if (task, agent, str(seed)) in done:
                    continue
                row = run(task, agent, seed)
                is_new = not wanted.scores.exists()
                with wanted.scores.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if is_new:
                        writer.writeheader()
                    writer.writerow(row)
                print(row, file=sys.stderr)


if __name__ == "__main__":
    main()
