"""Every number of docs/worlds.md: what our estimators and tables give in the worlds of the literature.

    python results/worlds/study.py results/worlds [WORLD ...]

WORLD is any of example, bandit, grid, roulette, maxmin and ads; all of them take about five core-minutes.
Each writes a CSV file of its name, and how it was made into `made_by.json`. Columns `…_interval` hold
half-widths of 95% intervals over seeds.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ebql.environments import (
    internet_ads,
    maxmin_chain,
    noisy_grid,
    repeated_bandit,
    roulette,
    sutton_barto_bias,
)
from ebql.estimators import by_rule, ensemble_moments, single_moments
from ebql.estimators.intervals import over_seeds
from ebql.runs import output_folder, provenance, write_csv, write_json
from ebql.tabular import (
    EBQL,
    CandidateQLearning,
    DoubleQLearning,
    Maxmin,
    Metric,
    OrderQLearning,
    QLearning,
    WeightedDoubleQLearning,
    WeightedQLearning,
    inverse_visits,
    learn,
    measure,
)

Row = tuple[object, ...]
Floats = NDArray[np.float64]

SEEDS = 200
DISCOUNT = 0.95
EXPLORATION = inverse_visits(0.5)
POLYNOMIAL, LINEAR = inverse_visits(0.8), inverse_visits(1.0)

EXAMPLE_LENGTHS = ((300, 10_000), (10_000, 1_000))  # episodes of the book's figure, and many more; seeds
EXAMPLE_EPSILON, EXAMPLE_STEP = 0.1, 0.1
ROULETTE_SEEDS, TRIALS = 5, 100_000
GRID_STEPS, GRID_EPISODES = 10_000, 2_000
CHAIN_EPISODES, CHAIN_EPSILON, CHAIN_STEP = 5_000, 0.1, 0.01
VISITORS = (30_000, 300_000)
BATCHES = 50  # of visitors of an ad: as many samples as simulations keep, each the mean of a batch
REPLICATIONS = 2_000


def told(values: Floats) -> tuple[float, float]:
    """Return the mean over seeds and the half-width of its interval."""
    estimate = over_seeds(values)
    return float(estimate.mean), float(estimate.half_width)


def examples() -> list[Row]:
    """Return the share of episodes that go left, the wrong choice: the last tenth of them, and at most."""
    rows: list[Row] = []
    for episodes, seeds in EXAMPLE_LENGTHS:
        for agent in (QLearning(), DoubleQLearning(), EBQL(10)):
            history = learn(
                sutton_barto_bias(),
                agent,
                episodes=episodes,
                seeds=seeds,
                epsilon=EXAMPLE_EPSILON,
                learning_rate=EXAMPLE_STEP,
                record_every=episodes,
            )
            left = history.lengths == 2
            rows.append(
                (episodes, agent.label, *told(left[:, -episodes // 10 :].mean(1)), left.mean(0).max())
            )
    return rows


def bandits() -> list[Row]:
    """Return the largest value after 10,000 steps; of Maxmin also the largest minimum, on which it acts."""
    rows: list[Row] = []
    agents = (QLearning(), DoubleQLearning(), Maxmin(2), EBQL(10))
    cases = [(arms, 10.0, agent) for arms in (20, 40, 60, 80) for agent in agents]
    cases += [(40, std, OrderQLearning(2, 2)) for std in (5.0, 20.0)]
    for arms, std, agent in cases:
        history = learn(
            repeated_bandit([0.0] * arms, std),
            replace(agent, prior_scale=1.0),  # first values are N(0, 1), as in the source
            episodes=1,
            seeds=SEEDS,
            discount=DISCOUNT,
            epsilon=EXPLORATION,
            learning_rate=POLYNOMIAL,
        )
        members = history.tables[:, :, 0]
        values = *told(members.mean(1).max(-1)), *told(members.min(1).max(-1))
        rows.append((arms, std, agent.label, *values))
    return rows


def grids() -> list[Row]:
    """Return the mean reward of a step over the first steps, and the final largest value of the start."""
    rows: list[Row] = []
    for agent in (
        QLearning(),
        DoubleQLearning(),
        EBQL(10),
        Maxmin(2),
        CandidateQLearning(),
        WeightedQLearning(10),
        WeightedDoubleQLearning(),
    ):
        history = learn(
            noisy_grid(),
            agent,
            episodes=GRID_EPISODES,
            seeds=SEEDS,
            discount=DISCOUNT,
            epsilon=EXPLORATION,
            learning_rate=POLYNOMIAL,
        )
        # An episode of n steps earns 5 - (n - 1) on average; the noise is left out.
        begun = np.cumsum(history.lengths, axis=1) - history.lengths
        counted = begun < GRID_STEPS
        steps = np.where(counted, history.lengths, 0).sum(1)
        rewards = np.where(counted, 6 - history.lengths, 0).sum(1)
        value = history.q_values()[:, 0].max(-1)
        rows.append((agent.label, *told(rewards / steps), *told(value), int(steps.min())))
    return rows


def wheels() -> list[Row]:
    """Return the mean and the largest value of a bet, with uniformly random actions."""
    rows: list[Row] = []
    for name, rate in (("1/n", LINEAR), ("1/n^0.8", POLYNOMIAL)):
        for agent in (QLearning(), DoubleQLearning(), EBQL(10)):
            history = learn(
                roulette(),
                agent,
                episodes=TRIALS,
                seeds=ROULETTE_SEEDS,
                discount=DISCOUNT,
                epsilon=1.0,
                learning_rate=rate,
                record_every=TRIALS,
            )
            bets = history.q_values()[:, 0, :-1]
            rows.append((name, agent.label, *told(bets.mean(-1)), *told(bets.max(-1)), history.updates))
    return rows


def chains() -> list[Row]:
    """Return the share of risky choices in the last tenth of episodes, and the final bias."""
    rows: list[Row] = []
    for mean in (0.1, -0.1):
        for agent in (QLearning(), DoubleQLearning(), EBQL(10), *(Maxmin(k) for k in (2, 4, 6, 8))):
            history = learn(
                maxmin_chain(mean),
                agent,
                episodes=CHAIN_EPISODES,
                seeds=SEEDS,
                epsilon=CHAIN_EPSILON,
                learning_rate=CHAIN_STEP,
                record_every=CHAIN_EPISODES,
            )
            risky = (history.lengths[:, -CHAIN_EPISODES // 10 :] == 2).mean(1)
            bias = measure(history)[Metric.BIAS_RISKY][:, -1, 0]
            rows.append((mean, agent.label, *told(risky), *told(bias)))
    return rows


def ads() -> list[Row]:
    """Return bias and RMSE of estimates of the best click rate, in clicks for 10,000 visitors."""
    rows: list[Row] = []
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


def _with_intervals(*names: str) -> tuple[str, ...]:
    return tuple(column for name in names for column in (name, f"{name}_interval"))


STUDIES: dict[str, tuple[Callable[[], list[Row]], tuple[str, ...]]] = {
    "example": (examples, ("episodes", "agent", *_with_intervals("left"), "most_left")),
    "bandit": (bandits, ("arms", "std", "agent", *_with_intervals("largest_mean", "largest_minimum"))),
    "grid": (grids, ("agent", *_with_intervals("reward_per_step", "value_of_start"), "steps")),
    "roulette": (wheels, ("rate", "agent", *_with_intervals("mean_bet", "largest_bet"), "updates")),
    "maxmin": (chains, ("mean", "agent", *_with_intervals("risky", "bias"))),
    "ads": (ads, ("visitors", "method", "bias", "rmse")),
}


def main() -> None:
    """Write the tables that were asked for."""
    folder = output_folder(Path(sys.argv[1]))
    record = folder / "made_by.json"
    for name in sys.argv[2:] or STUDIES:
        make, header = STUDIES[name]
        write_csv(folder / f"{name}.csv", header, make())
        made = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        write_json(record, made | {name: provenance(["python", *sys.argv])})
        print(f"{name}.csv", flush=True)


if __name__ == "__main__":
    main()
