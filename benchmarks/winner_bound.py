"""How close any estimate can come to the better of the sample mean and shrinkage, in two worlds at once.

    python benchmarks/winner_bound.py [--tests 4200]

One world has m equal arms. In the other, one arm is ahead by 2 to 7 standard errors, uniformly. Suppose that
an estimate's squared error is at most f² times that of the better rival, in either world for every lead.
Then this also holds for any weighted mean of both worlds, of which no estimate has less than the Bayes
estimate that knows the worlds and their weights. So f is at least the root of that ratio, for every weight.
The bound is generous: its estimate also knows the centre, which real ones must estimate.
"""

import argparse

import numpy as np
from scipy.special import logsumexp

LEADS = np.linspace(2, 7, 21)
WEIGHTS = np.linspace(0.05, 0.95, 19)


def rivals(means: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return the mean squared errors of the sample mean and of James and Stein's shrinkage."""
    rows, index = np.arange(len(means)), means.argmax(1)
    x, theta = means[rows, index], truth[rows, index]
    centre = means.mean(1)
    towards = np.minimum(1, 1 / means.var(1, ddof=1))
    shrunk = x - towards * (x - centre)
    return float(np.mean((x - theta) ** 2)), float(np.mean((shrunk - theta) ** 2))


def bayes(means: np.ndarray, weight: float) -> np.ndarray:
    """Return the posterior mean of the winner's mean, if the second world has this prior `weight`."""
    arms = means.shape[1]
    ahead = LEADS * means[..., None] - LEADS**2 / 2 + np.log(weight / (arms * LEADS.size))
    total = np.logaddexp(logsumexp(ahead, axis=(1, 2)), np.log1p(-weight))
    winner = ahead[np.arange(len(means)), means.argmax(1)]
    return np.asarray((np.exp(winner - total[:, None]) * LEADS).sum(1))


def least_factor(arms: int, tests: int, rng: np.random.Generator) -> float:
    """Return by which factor in RMSE every estimate exceeds the better rival, in one of the worlds."""
    equal = rng.normal(size=(tests, arms))
    truth = np.zeros((tests, arms))
    truth[:, 0] = rng.permutation(np.resize(LEADS, tests))
    ahead = truth + rng.normal(size=(tests, arms))
    of_winner = truth[np.arange(tests), ahead.argmax(1)]
    by_lead = [min(rivals(ahead[truth[:, 0] == lead], truth[truth[:, 0] == lead])) for lead in LEADS]
    best_equal, best_ahead = min(rivals(equal, np.zeros_like(equal))), float(np.mean(by_lead))
    ratios = []
    for weight in WEIGHTS:
        in_equal = np.mean(bayes(equal, weight) ** 2)
        in_ahead = np.mean((bayes(ahead, weight) - of_winner) ** 2)
        least = (1 - weight) * in_equal + weight * in_ahead
        ratios.append(least / ((1 - weight) * best_equal + weight * best_ahead))
    return float(max(ratios) ** 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tests", type=int, default=4_200)
    tests = parser.parse_args().tests
    for arms in (2, 5, 10, 50):
        print(
            f"{arms} arms: at least {least_factor(arms, tests, np.random.default_rng(arms)):.3f}", flush=True
        )


if __name__ == "__main__":
    main()
