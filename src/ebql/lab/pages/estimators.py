"""The page of estimators: exact errors, the error of every split, and simulated estimates."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError
from ebql.estimators import (
    MaxEstimate,
    Moments,
    Split,
    double,
    ensemble,
    ensemble_moments,
    exact_moments,
    gaussian,
    optimal_ensemble_size,
    optimal_split,
    single,
    single_moments,
    weighted_double,
)
from ebql.lab.pages.rules import Members, RuleSimulation, exact_rule, rules
from ebql.lab.parameters import Query, real, whole

Floats = NDArray[np.float64]

MOST_ARMS, MOST_SAMPLES = 20, 500
_MOST_POINTS = 160  # of the curve of splits
REPLICATIONS = 20_000
_SECONDS = 20.0
_SAMPLES_AT_ONCE = 250_000
_BINS = 90


@dataclass(frozen=True)
class Arms:
    """One best arm, `gap` above all others; `samples` of each arm, with standard deviation `spread`."""

    arms: int
    gap: float
    spread: float
    samples: int
    members: int

    @property
    def means(self) -> Floats:
        """The means, (m,), the best first; the largest mean is 0, so an estimate is its own error."""
        return np.array([0.0] + [-self.gap] * (self.arms - 1))

    @property
    def shared(self) -> Members:
        """The samples, shared by the members."""
        return Members(self.means, self.spread, self.samples, self.members)


def asked(query: Query) -> Arms:
    """Return the arms that a request describes."""
    samples = whole(query, "n", 20, 2, MOST_SAMPLES)
    members = whole(query, "k", 5, 2, MOST_SAMPLES)
    if members > samples:
        raise InputError(f"k must be at most n, the samples of each arm: {members} is more than {samples}.")
    return Arms(
        whole(query, "arms", 10, 2, MOST_ARMS),
        real(query, "gap", 0.0, 0.0, 5.0),
        real(query, "spread", 1.0, 0.05, 5.0),
        samples,
        members,
    )


def exact(arms: Arms) -> dict[str, Any]:
    """Return the exact errors of all estimators, and the error of every split with its optimum.

    `rules` are the package's other rules; one without `mse` is known from a simulation only.
    """
    means, spread, n = arms.means, arms.spread, arms.samples
    best = _best_split(arms)
    splits = np.unique(np.linspace(1, n - 1, min(n - 1, _MOST_POINTS)).round().astype(np.int64))
    splits = np.union1d(splits, [best.n_index])
    curve = exact_moments(means, spread, n, splits)
    return {
        "estimators": [
            {"key": key, "name": name, **_row(moments)} for key, name, moments in _estimators(arms)
        ],
        "rules": [
            {"key": rule.key, "name": rule.label, **(_row(moments) if moments else {})}
            for rule in rules(arms.members)
            for moments in [exact_rule(rule, arms.shared)]
        ],
        "best_members": optimal_ensemble_size(means, spread, n),
        "splits": {"n_index": splits, "mse": curve.mse, "bias": curve.bias},
        "optimum": {"n_index": best.n_index, "mse": best.mse},
    }


@lru_cache(maxsize=64)
def _best_split(arms: Arms) -> Split:
    return optimal_split(arms.means, arms.spread, arms.samples)


def _estimators(arms: Arms) -> Iterator[tuple[str, str, Moments]]:
    means, spread, n = arms.means, arms.spread, arms.samples
    best = _best_split(arms).n_index
    yield "single", "Single", single_moments(means, spread, n)
    yield "double", "Double", ensemble_moments(means, spread, n, 2)
    yield "ensemble", f"Ensemble, K = {arms.members}", ensemble_moments(means, spread, n, arms.members)
    yield "split", f"Best split, {best} of {n} select", exact_moments(means, spread, n, best)


def _row(moments: Moments) -> dict[str, Any]:
    return {
        "bias": float(moments.bias),
        "variance": float(moments.variance),
        "mse": float(moments.mse),
        "selection": moments.selection,
    }


def simulation(query: Query) -> Iterator[dict[str, Any]]:
    """Yield the histograms that a request asks for."""
    return simulated(asked(query), whole(query, "seed", 0, 0, 2**32 - 1))


def simulated(arms: Arms, seed: int) -> Iterator[dict[str, Any]]:
    """Yield growing histograms of the estimators' errors, until `REPLICATIONS` data sets or 20 seconds.

    Each element holds counts so far: `edges` (bins + 1,), and for each estimator `counts` (bins,) and `mean`.
    Errors beyond the edges count in the outermost bins. `rules` are the errors of rules that are not exact.
    """
    means, n = arms.means, arms.samples
    best = _best_split(arms).n_index
    estimators: dict[str, Callable[[Floats], MaxEstimate]] = {
        "single": single,
        "double": double,
        "ensemble": partial(ensemble, k=arms.members),
        "split": partial(weighted_double, n_index=best),
    }
    edges = _edges(arms)
    counts = {key: np.zeros(_BINS, np.int64) for key in estimators}
    sums = dict.fromkeys(estimators, 0.0)
    rng, sampler = np.random.default_rng(seed), gaussian(means, arms.spread)
    others = RuleSimulation(arms.shared, np.random.default_rng([seed, 1]))
    batch = max(20, min(500, _SAMPLES_AT_ONCE // (arms.arms * n)))
    drawn, began = 0, time.monotonic()
    while drawn < REPLICATIONS and time.monotonic() - began < _SECONDS:
        samples = sampler(rng, min(batch, REPLICATIONS - drawn), n)
        drawn += len(samples)
        for key, estimator in estimators.items():
            errors = estimator(samples).value
            sums[key] += float(errors.sum())
            counts[key] += np.histogram(np.clip(errors, edges[0], edges[-1]), edges)[0]
        others.add(len(samples))
        shown = {key: {"counts": counts[key], "mean": sums[key] / drawn} for key in estimators}
        yield {
            "drawn": drawn,
            "of": REPLICATIONS,
            "edges": edges,
            "estimators": shown,
            "rules": others.told(),
        }


def _edges(arms: Arms) -> Floats:
    """Return bins that hold nearly all errors of all estimators, (bins + 1,)."""
    rows = [moments for _, _, moments in _estimators(arms)]
    low = min(float(row.bias - 3.7 * row.variance**0.5) for row in rows)
    high = max(float(row.bias + 3.7 * row.variance**0.5) for row in rows)
    return np.linspace(low, high, _BINS + 1)
