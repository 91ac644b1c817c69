"""The internet ads and Maxmin's MDP of docs/worlds.md: what our estimators and tables give.

    python results/worlds/study.py results/worlds

Ads: the bias and the RMSE of estimates of the best click rate, exact where a method has a closed form and
simulated otherwise. Maxmin's MDP: how often tables choose the risky action, and their final bias.
"""

import sys
from pathlib import Path

import numpy as np

from ebql.environments import internet_ads, maxmin_chain
from ebql.estimators import by_rule, ensemble_moments, single_moments
from ebql.estimators.intervals import over_seeds
from ebql.runs import output_folder, provenance, write_csv, write_json
from ebql.tabular import EBQL, DoubleQLearning, Maxmin, Metric, QLearning, learn, measure

VISITORS = (30_000, 300_000)
BATCHES = 50  # of visitors of an ad: as many samples as simulations keep, each the mean of a batch
REPLICATIONS = 2_000
SEEDS, EPISODES, EPSILON, STEP = 200, 5_000, 0.1, 0.01


def ads() -> list[tuple[object, ...]]:
    """Return (visitors, method, bias, RMSE), both in clicks for 10,000 visitors."""
    rows: list[tuple[object, ...]] = []
    world = internet_ads()
    means, stds = world.reward_means[0, :, 1], world.reward_stds[0, :, 1]
    for visitors in VISITORS:
        each = visitors // len(means)
        exact = {
            "maximum": single_moments(means, stds, each),
            "double": ensemble_moments(means, stds, each, 2),
            "EBQL 10": ensemble_moments(means, stds, each, 10),
        }
        found = {name: (moments.bias, moments.mse**0.5) for name, moments in exact.items()}
        rng = np.random.default_rng(visitors)
        shape = REPLICATIONS, len(means), BATCHES
        samples = rng.normal(size=shape) * (stds * (BATCHES / each) ** 0.5)[:, None] + means[:, None]
        errors = by_rule(samples, "weighted", 10).value - means.max()
        found["weighted"] = float(errors.mean()), float((errors**2).mean() ** 0.5)
        rows += [(visitors, name, 1e4 * bias, 1e4 * rmse) for name, (bias, rmse) in found.items()]
    return rows


def chains() -> list[tuple[object, ...]]:
    """Return (mean, agent, share of risky choices in the last tenth, interval, final bias, interval)."""
    rows: list[tuple[object, ...]] = []
    for mean in (0.1, -0.1):
        for agent in (QLearning(), DoubleQLearning(), EBQL(10), *(Maxmin(k) for k in (2, 4, 6, 8))):
            history = learn(
                maxmin_chain(mean),
                agent,
                episodes=EPISODES,
                seeds=SEEDS,
                epsilon=EPSILON,
                learning_rate=STEP,
                record_every=EPISODES,
            )
            risky = over_seeds((history.lengths[:, -EPISODES // 10 :] == 2).mean(1))
            bias = over_seeds(measure(history)[Metric.BIAS_RISKY][:, -1, 0])
            rows.append((mean, agent.label, *map(float, risky), *map(float, bias)))
    return rows


def main() -> None:
    """Write both tables."""
    folder = output_folder(Path(sys.argv[1]))
    write_csv(folder / "ads.csv", ("visitors", "method", "bias", "rmse"), ads())
    header = ("mean", "agent", "risky", "risky_interval", "bias", "bias_interval")
    write_csv(folder / "maxmin.csv", header, chains())
    write_json(folder / "made_by.json", provenance(["python", *sys.argv]))


if __name__ == "__main__":
    main()
