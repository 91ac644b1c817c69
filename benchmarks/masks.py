"""Do agents learn faster with action masks? Taxi on tables, Crazy Eights with networks; five seeds each.

    python benchmarks/masks.py results/masks/scores.csv

Takes about ten minutes. EBQL is trained with each seed twice, with masks and without. Scores are mean
undiscounted returns of greedy evaluation episodes: 100 on Taxi, 100 games of Crazy Eights.
"""

import argparse
import csv
import sys
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

from ebql import EBQL, tabular

sys.path.append(str(Path(__file__).parents[1] / "examples"))
from crazy_eights import CrazyEights

SEEDS = 5
EPISODES = (300, 1_000, 3_000)
STEPS = (2_000, 10_000, 30_000)
EVALUATION_EPISODES = 100
OPTIONS = {
    "preset": "plain",
    "hidden": (64,),
    "learning_starts": 500,
    "epsilon_steps": 5_000,
    "evaluation_period": 0,
}


def taxi(masks):
    """Yield (seed, "episodes", number of them, score) for EBQL with 5 tables."""
    kwargs = {"epsilon": 0.1, "learning_rate": 0.5, "discount": 0.95, "action_masks": masks}
    for episodes in EPISODES:
        history = tabular.learn("Taxi-v4", tabular.EBQL(5), episodes=episodes, seeds=SEEDS, **kwargs)
        for seed, values in enumerate(history.q_values()):
            yield seed, "episodes", episodes, greedy_taxi(values, masks, seed)


def greedy_taxi(values, masks, seed):
    """Return the mean return of the greedy policy for `values`, (states, actions)."""
    env = gymnasium.make("Taxi-v4")
    returns = np.zeros(EVALUATION_EPISODES)
    for episode in range(EVALUATION_EPISODES):
        state, info = env.reset(seed=1_000 * (seed + 1) + episode)
        ended = False
        while not ended:
            legal = info["action_mask"] == 1 if masks else True
            state, reward, terminated, truncated, info = env.step(
                int(np.where(legal, values[state], -np.inf).argmax())
            )
            returns[episode] += reward
            ended = terminated or truncated
    return returns.mean()


def cards(masks):
    """Yield (seed, "steps", number of them, score) for EBQL with 5 members."""
    for seed in range(SEEDS):
        agent = EBQL(lambda: TimeLimit(CrazyEights(), 100), seed=seed, action_masks=masks, **OPTIONS)
        for steps in STEPS:
            agent.learn(steps - agent.steps)
            yield seed, "steps", steps, agent.evaluate(EVALUATION_EPISODES, seed=seed).mean


def main(path):
    """Write one row for each environment, seed and amount of training, with masks and without."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["environment", "masks", "seed", "unit", "trained", "score"])
        for environment, study in (("Taxi-v4", taxi), ("CrazyEights", cards)):
            for masks in (True, False):
                for seed, unit, trained, score in study(masks):
                    rows.writerow([environment, masks, seed, unit, trained, f"{score:.4g}"])
                    file.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("path", type=Path, help="the CSV file to write")
    main(parser.parse_args().path)
