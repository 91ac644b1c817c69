"""The data of figures 1 and 2: the error of the ensemble estimator for every split of the samples."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ebql.estimators import (
    ensemble_moments,
    exact_moments,
    gaussian,
    optimal_split,
    simulate,
    weighted_double,
)

Floats = NDArray[np.float64]

# The paper states the variance but neither the sample size nor the gaps. We take 100 samples, and gaps below
# and above the signal-to-noise ratio at which the best split is closest to even.
VARIANCE = 0.25
SAMPLES = 100
GAPS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 2.0, 5.0)
ARMS = (2, 4, 6)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class SplitCurve:
    """The mean squared error of every split of `SAMPLES` samples for two arms with means `gap` apart."""

    gap: float
    n_index: NDArray[np.int64]  # (SAMPLES - 1,)
    mse: Floats  # (SAMPLES - 1,), exact
    simulated_n_index: NDArray[np.int64]  # (n,)
    simulated_mse: Floats  # (n,)
    simulated_half_width: Floats  # (n,), of the 95% interval

    @property
    def best(self) -> int:
        """The number of selecting samples with the lowest exact error."""
        return int(self.n_index[self.mse.argmin()])


def split_curves(
    progress: Progress, *, gaps: tuple[float, ...] = GAPS, points: int = 25, replications: int = 20_000
) -> list[SplitCurve]:
    """Return figure 1: MSE against the split for several gaps, exact and simulated at `points` splits."""
    every = np.arange(1, SAMPLES)
    some = np.unique(np.linspace(1, SAMPLES - 1, points).round().astype(np.int64))
    curves = []
    for number, gap in enumerate(gaps):
        arms = gaussian([gap, 0.0], np.sqrt(VARIANCE))
        simulated = [
            simulate(
                arms,
                SAMPLES,
                partial(weighted_double, n_index=int(n_index)),
                replications=replications,
                seed=points * number + position,
            ).mse
            for position, n_index in enumerate(some)
        ]
        curves.append(
            SplitCurve(
                gap=gap,
                n_index=every,
                mse=exact_moments(arms.means, arms.stds, SAMPLES, every).mse,
                simulated_n_index=some,
                simulated_mse=np.array([interval.value for interval in simulated]),
                simulated_half_width=np.array([(i.high - i.low) / 2 for i in simulated]),
            )
        )
        progress(f"fig1: gap {gap:g}")
    return curves


@dataclass(frozen=True)
class BestSplits:
    """The best split against the normalised gap, for `arms` arms with evenly spaced means."""

    arms: int
    normalized_gap: Floats  # (n,), Δ / (σ √m)
    n_index: NDArray[np.int64]  # (n,)
    ensemble_size: NDArray[np.int64]  # (n,)
    gain: Floats  # (n,), relative reduction of the double estimator's MSE by the best ensemble of 3 or more


def best_splits(progress: Progress, *, points: int = 61) -> list[BestSplits]:
    """Return figure 2: the best split against the normalised gap for 2, 4 and 6 arms."""
    std = np.sqrt(VARIANCE)
    normalized = np.geomspace(0.01, 10.0, points)
    results = []
    for arms in ARMS:
        all_means = [np.linspace(0.0, gap * std * np.sqrt(arms), arms) for gap in normalized]
        splits = [optimal_split(means, std, SAMPLES) for means in all_means]
        sizes = np.arange(2, SAMPLES + 1)
        errors = np.array([ensemble_moments(means, std, SAMPLES, sizes).mse for means in all_means])
        results.append(
            BestSplits(
                arms=arms,
                normalized_gap=normalized,
                n_index=np.array([split.n_index for split in splits]),
                ensemble_size=np.array([split.ensemble_size for split in splits]),
                gain=1 - errors[:, 1:].min(1) / errors[:, 0],
            )
        )
        progress(f"fig2: {arms} arms")
    return results
