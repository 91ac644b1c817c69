"""Do agents learn faster with action masks? Taxi on tables, Crazy Eights with networks; five seeds each.

    python benchmarks/masks.py results/masks/scores.csv

Takes a few minutes. EBQL is trained twice with each seed, with masks and without them. Scores are mean
returns: on Taxi of the last 50 training episodes, discounted; on Crazy Eights of 50 evaluation games.
"""

import csv
import sys
from pathlib import Path

from gymnasium.wrappers import TimeLimit

from ebql import EBQL, tabular

sys.path.append(str(Path(__file__).parents[1] / "examples"))
from crazy_eights import CrazyEights

SEEDS = 5
EPISODES = (100, 200, 400)
STEPS = (1_000, 2_000)
OPTIONS = {
    "preset": "plain",
    "hidden": (64,),
    "learning_starts": 200,
    "epsilon_steps": 1_000,
    "evaluation_period": 0,
}


def taxi(masks):
    """Yield (seed, "episodes", number of them, score) for EBQL with 5 tables."""
    kwargs = {"epsilon": 0.1, "learning_rate": 0.5, "discount": 0.95, "action_masks": masks}
    history = tabular.learn("Taxi-v4", tabular.EBQL(5), episodes=EPISODES[-1], seeds=SEEDS, **kwargs)
    for seed in range(SEEDS):
        for episodes in EPISODES:
            yield seed, "episodes", episodes, history.returns[seed, episodes - 50 : episodes].mean()


def cards(masks):
    """Yield (seed, "steps", number of them, score) for EBQL with 5 members."""
    for seed in range(SEEDS):
        agent = EBQL(lambda: TimeLimit(CrazyEights(), 100), seed=seed, action_masks=masks, **OPTIONS)
        for steps in STEPS:
            agent.learn(steps - agent.steps)
            yield seed, "steps", steps, agent.evaluate(50, seed=seed).mean


def main(path):
    """Write one row for each environment, seed and amount of training, with masks and without."""
    with Path(path).open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["environment", "masks", "seed", "unit", "trained", "score"])
        for environment, study in (("Taxi-v4", taxi), ("CrazyEights", cards)):
            for masks in (True, False):
                for seed, unit, trained, score in study(masks):
                    rows.writerow([environment, masks, seed, unit, trained, f"{score:.4g}"])
                    file.flush()


if __name__ == "__main__":
    main(sys.argv[1])
