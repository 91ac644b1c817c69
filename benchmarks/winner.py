"""How well `ebql best-k --csv` does over simulated tests: coverage, length and RMSE, world by world.

    python benchmarks/winner.py [--tests 2000] [--samples rates] [--out results/winner]

A world is a number of arms, a number of samples per arm, a distribution of samples, and a pattern of true
means in units of their standard error. Every test draws new samples and estimates the true mean of the arm
that won, with the package's rules, applied to all tests of a world at once. `ratio` is the RMSE of the
recommended estimate over that of the better of naive and shrinkage; `ratio_plain` is the same with James and
Stein's shrinkage. Coverage is a share of all tests, with a standard error of 0.5% for 2,000. The posterior is
slow, so RMSEs are those of a fifth of the tests; their ratios compare estimates of the same tests.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.special import ndtr, stdtrit

from ebql.estimators.winner.conditional import (
    Ends,
    binomial_scores,
    conditional_interval,
    simultaneous_limit,
    student_scores,
)
from ebql.estimators.winner.rates import RatePosterior, angles
from ebql.estimators.winner.shrinkage import Posterior, posterior, stands_apart
from ebql.runs import output_folder, provenance, write_csv, write_json

SAMPLES = ("gaussian", "rates", "t3", "lognormal")
ARMS = (2, 5, 10, 50)
COUNTS = (30, 100, 1_000, 10_000)
RATE = 0.1
POOL = 4_000  # sample means and deviations that tests with skewed or heavy-tailed samples draw from
CONFIDENCE = 0.95
HEADER = (
    "samples", "pattern", "arms", "n", "tests", "coverage", "relative_length", "naive_coverage",
    "shrinkage_coverage", "estimate_inside", "stands_apart",
    "rmse", "rmse_naive", "rmse_shrinkage", "rmse_plain", "ratio", "ratio_plain",
)  # fmt: skip
"""Lengths are relative to the naive interval's; RMSEs are in standard errors of a mean."""


def patterns(arms: int, tests: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield names and true means (tests, arms) in standard errors."""
    yield "equal", np.zeros((tests, arms))
    for spread in (0.5, 1, 2, 4):
        yield f"drawn, sd {spread}", rng.normal(0, spread, (tests, arms))
    yield "evenly over 3", np.tile(np.linspace(0, 3, arms), (tests, 1))
    for lead in (3, 10):
        yield f"one ahead by {lead}", np.tile(np.where(np.arange(arms), 0.0, lead), (tests, 1))


def standardised(kind: str, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Draw samples with mean 0 and variance 1."""
    if kind == "t3":
        return rng.standard_t(3, size) / 3**0.5
    return (rng.lognormal(0, 1, size) - np.exp(0.5)) / ((np.e - 1) * np.e) ** 0.5


def pool(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of POOL batches of n samples."""
    means, stds = [], []
    for start in range(0, POOL, 100):
        samples = standardised(kind, (min(100, POOL - start), n), rng)
        means.append(samples.mean(1))
        stds.append(samples.std(1, ddof=1))
    return np.concatenate(means), np.concatenate(stds)


Draw = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""True means in standard errors → true means, sample means and standard errors, in the samples' units."""


def drawing(kind: str, n: int, rng: np.random.Generator) -> Draw:
    """Return how samples of this kind are drawn."""
    drawn = pool(kind, n, rng) if kind in ("t3", "lognormal") else None

    def draw(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if kind == "rates":
            rates = np.clip(RATE + theta * (RATE * (1 - RATE) / n) ** 0.5, 0.001, 0.999)
            successes = rng.binomial(n, rates)
            smoothed = (successes + 0.5) / (n + 1)
            return rates, successes / n, np.sqrt(smoothed * (1 - smoothed) / n)
        true = theta / n**0.5
        if drawn is None:
            stds = np.sqrt(rng.chisquare(n - 1, theta.shape) / (n - 1))
            return true, true + rng.normal(0, n**-0.5, theta.shape), stds / n**0.5
        rows = rng.integers(POOL, size=theta.shape)
        return true, true + drawn[0][rows], drawn[1][rows] / n**0.5

    return draw


def world(kind: str, n: int, theta: np.ndarray, draw: Draw, rng: np.random.Generator) -> list[float]:
    """Return what HEADER names after `tests`."""
    true, means, errors = draw(theta)
    tests, arms = means.shape
    index = (means + 1e-9 * rng.random(means.shape)).argmax(1)  # equal rates: any of them wins

    def won(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, index[:, None], 1)[:, 0]

    truth, x, error = won(true), won(means), won(errors)
    limit = simultaneous_limit(arms, CONFIDENCE)
    runner_up = np.sort(means, 1)[:, -2]
    degrees = np.full(tests, n - 1.0)
    if kind == "rates":
        scores, bounds = binomial_scores(np.full(tests, float(n))), Ends(np.zeros(tests), np.ones(tests))
    else:
        reach = -1.01 * stdtrit(degrees, ndtr(-limit)) * error
        scores, bounds = student_scores(error, degrees), Ends(x - reach, x + reach)
    low, high = conditional_interval(x, runner_up, scores, bounds, limit, CONFIDENCE)
    half = -stdtrit(degrees, (1 - CONFIDENCE) / 2) * error

    length = float(np.mean(high - low) / np.mean(2 * half))
    covered = [share(low, high, truth), length, share(x - half, x + half, truth)]
    few = slice(tests // 5)
    means, errors, index, truth, x = means[few], errors[few], index[few], truth[few], x[few]
    centre, variance = means.mean(1), np.maximum(means.var(1, ddof=1), 1e-300)
    plain = x - np.minimum(1, (errors**2).mean(1) / variance) * (x - centre)
    shrunk_scale = angles(n, means) if kind == "rates" else (means, errors)
    belief, apart = posterior(*shrunk_scale, index), stands_apart(*shrunk_scale, index)
    shrinkage = RatePosterior(belief).mean() if kind == "rates" else belief.mean()
    estimate = np.where(apart, x, shrinkage)
    unit = n**-0.5 * ((RATE * (1 - RATE)) ** 0.5 if kind == "rates" else 1.0)
    error, naive, shrunk, james_stein = (
        float(np.mean((values - truth) ** 2) ** 0.5 / unit) for values in (estimate, x, shrinkage, plain)
    )
    on_scale = np.arcsin(np.sqrt(truth)) if kind == "rates" else truth
    central = float(np.mean(np.abs(below(belief, on_scale) - 0.5) <= CONFIDENCE / 2))
    return [
        *covered, central, share(low[few], high[few], estimate), float(apart.mean()),
        error, naive, shrunk, james_stein, error / min(naive, shrunk), error / min(naive, james_stein),
    ]  # fmt: skip


def share(low: np.ndarray, high: np.ndarray, value: np.ndarray) -> float:
    """Return the share of intervals that hold their value."""
    return float(np.mean((low <= value) & (value <= high)))


def below(belief: Posterior, value: np.ndarray) -> np.ndarray:
    """Return the posterior probability that the mean is below `value`."""
    scores = (value[:, None] - belief.means) / np.sqrt(belief.variances)
    return np.asarray((belief.weights * ndtr(scores)).sum(-1))


def worlds(kind: str, n: int, tests: int) -> list[tuple[object, ...]]:
    """Return the rows of all worlds with these samples."""
    rng = np.random.default_rng(n)
    draw = drawing(kind, n, rng)
    return [
        (kind, name, arms, n, tests, *world(kind, n, theta, draw, rng))
        for arms in ARMS
        for name, theta in patterns(arms, tests, rng)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=int, default=2_000)
    parser.add_argument("--samples", nargs="+", choices=SAMPLES, default=SAMPLES)
    parser.add_argument("--out", type=Path, default=Path("results/winner"))
    options = parser.parse_args()
    folder = output_folder(options.out)
    tasks = [(kind, n, options.tests) for kind in options.samples for n in COUNTS]
    with ProcessPoolExecutor(max_workers=2) as executor:
        rows = [row for found in executor.map(worlds, *zip(*tasks, strict=True)) for row in found]
    write_csv(folder / "worlds.csv", HEADER, rows)
    write_json(folder / "made_by.json", provenance(["python", *sys.argv]))


if __name__ == "__main__":
    main()
