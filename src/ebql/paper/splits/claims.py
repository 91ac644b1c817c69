"""The paper's claims about estimators (section 4, figures 1 and 2), each made measurable."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ebql.estimators import (
    ensemble,
    exact_moments,
    gaussian,
    optimal_split,
    simulate,
    single_moments,
    weighted_double,
)
from ebql.paper.ledger import Claim, Evidence, exactly
from ebql.paper.splits.curves import SAMPLES, VARIANCE, BestSplits, SplitCurve

Floats = NDArray[np.float64]

STD = float(np.sqrt(VARIANCE))


def estimator_claims() -> list[Claim]:
    """Return the claims of section 4 and appendices A to D, judged on grids of problems."""
    return [*_bias_claims(), _proxy_claim(), *_moment_claims(), *_split_claims()]


def _bias_claims() -> list[Claim]:
    grid = [([gap, 0.0], [STD, STD]) for gap in np.geomspace(1e-3, 0.5, 12)]
    grid += [([0.4, 0.3, 0.0, -0.5], [0.5, 1.0, 2.0, 0.1]), ([1.0, 0.9, 0.9, 0.2, 0.1, 0.0], [0.7] * 6)]
    splits = np.arange(1, SAMPLES)
    single = min(float(single_moments(means, stds, SAMPLES).bias) for means, stds in grid)
    strict = max(float(exact_moments(means, stds, SAMPLES, splits).bias.max()) for means, stds in grid)
    equal_arms = exact_moments([0.3, 0.3, 0.3], 1.0, SAMPLES, splits)
    return [
        Claim(
            "single estimator overestimates",
            "section 4, appendix D",
            "The largest sample mean is biased upwards.",
            (exactly("smallest bias on a grid of 14 problems", single),),
        ),
        Claim(
            "ensemble estimator underestimates",
            "lemma 1",
            "The ensemble estimator is biased downwards, strictly if and only if a worse arm can be "
            "selected.",
            (
                exactly("largest bias on the grid, where a worse arm can be selected", strict, "<"),
                exactly(
                    "largest |bias| of three equal arms, where no worse arm can be selected",
                    np.abs(equal_arms.bias).max(),
                    "<",
                    1e-15,
                ),
            ),
        ),
    ]


def _proxy_claim() -> Claim:
    samples = np.random.default_rng(0).normal(size=(200, 5, 60))
    difference = max(
        float(np.abs(ensemble(samples, k).value - weighted_double(samples, 60 // k).value).max())
        for k in (2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)
    )
    return Claim(
        "proxy identity",
        "proposition 1",
        "The ensemble estimator with K members equals the double estimator that selects with N/K samples.",
        (exactly("largest difference over 200 data sets and 11 sizes K", difference, "<", 1e-12),),
    )


def _moment_claims() -> list[Claim]:
    error = {arms: _product_form_error(np.linspace(0.3, 0.0, arms)) for arms in (2, 4, 6)}
    return [
        Claim(
            "bias, variance and MSE formulas",
            "section 4, appendix C",
            "The closed forms are the moments of the weighted double estimator.",
            tuple(_formulas_against_simulation()),
            note="Values are differences between formula and simulation in standard errors of the "
            "simulation.",
        ),
        Claim(
            "product form of P(â* = a)",
            "appendix C",
            "For two arms the probability of selecting an arm is a product of normal distribution functions.",
            (exactly("largest error, two arms with different standard deviations", error[2], "<", 1e-12),),
            note="The product does not extend to more arms, because the pairwise comparisons are dependent: "
            f"with 4 and 6 arms it is off by {error[4]:.2f} and {error[6]:.2f}. Figure 2 needs an integral.",
        ),
    ]


def _split_claims() -> list[Claim]:
    def best_n_index(snr: float) -> int:
        return optimal_split([snr * STD / np.sqrt(SAMPLES), 0.0], STD, SAMPLES).n_index

    even_sizes, gaps = range(12, 202, 2), np.geomspace(1e-3, 30, 80) * STD
    share = max(optimal_split([gap, 0.0], STD, n).n_index / n for n in even_sizes for gap in gaps)
    unequal = optimal_split([0.3, 0.0], [0.1, 1.0], SAMPLES).n_index
    return [
        Claim(
            "large SNR: select with one sample",
            "proposition 2 (1)",
            "As the signal-to-noise ratio grows, the best split tends to N₁ = 1.",
            (exactly("best N₁ at SNR 200, N = 100", best_n_index(200.0), "<", 2),),
            note="In the paper the proofs of (1) and (2) are swapped.",
        ),
        Claim(
            "small SNR: select with one sample",
            "proposition 2 (2)",
            "As the signal-to-noise ratio goes to 0, the best split tends to N₁ = 1.",
            (exactly("best N₁ at SNR 0.01, N = 100", best_n_index(0.01), "<", 2),),
        ),
        Claim(
            "an even split is never best for two arms alike",
            "proposition 2 (3)",
            "For two arms with equal standard deviations and any even N > 10, the best split selects with "
            "fewer than N/2 samples.",
            (exactly("largest best share N₁/N over 95 even N and 80 gaps", share, "<", 0.5),),
            note="The standard deviations must be equal: with means 0.3 and 0 and standard deviations 0.1 "
            f"and 1, the best split of 100 samples selects with {unequal}.",
        ),
    ]


def _formulas_against_simulation() -> list[Evidence]:
    evidence = []
    for seed, (means, stds, n_index) in enumerate(
        [([0.2, 0.0], [0.5, 0.5], 20), ([0.3, 0.2, 0.0, -0.1], [0.5, 1.0, 0.2, 2.0], 5)]
    ):
        estimator = partial(weighted_double, n_index=n_index)
        simulated = simulate(gaussian(means, stds), 50, estimator, replications=40_000, seed=seed)
        exact = exact_moments(means, stds, 50, n_index)
        for name in ("bias", "variance", "mse"):
            interval = getattr(simulated, name)
            standard_error = (interval.high - interval.low) / (2 * ndtri(0.975))
            z = abs(float(getattr(exact, name)) - interval.value) / standard_error
            evidence.append(exactly(f"{name}, {len(means)} arms", z, "<", 4, regime="simulation"))
    return evidence


def _product_form_error(means: Floats) -> float:
    """Return the largest error of 2 Π_j Φ(√N₁ (μ_a - μ_j) / √(σ_a² + σ_j²)) as P(arm a is selected)."""
    n_index, stds = 20, np.linspace(0.3, 0.8, len(means))
    z = np.sqrt(n_index) * (means[:, None] - means) / np.hypot(stds[:, None], stds)
    exact = exact_moments(means, stds, SAMPLES, n_index).selection
    return float(np.abs(2 * ndtr(z).prod(1) - exact).max())


def figure_1_claims(curves: Sequence[SplitCurve]) -> list[Claim]:
    """Return the claims of the caption of figure 1."""
    best = np.array([curve.best for curve in curves]) / SAMPLES
    rises = np.diff(best)
    peak = int(best.argmax())
    return [
        Claim(
            "the best split rises to 0.4 and falls again",
            "figure 1",
            "As the gap grows, the best share of samples that select rises from 0 to 0.4 and falls back to "
            "0.",
            (
                exactly("smallest step before the peak", rises[:peak].min()),
                exactly("largest step after the peak", rises[peak:].max(), "<"),
                exactly("distance of the highest best share from 0.4", abs(best.max() - 0.4), "<", 0.02),
                exactly("best share at the smallest gap", best[0], "<", 0.05),
                exactly("best share at the largest gap", best[-1], "<", 0.05),
            ),
        )
    ]


def figure_2_claims(results: Sequence[BestSplits]) -> list[Claim]:
    """Return the claims of section 4 about figure 2."""
    return [
        Claim(
            "more than two members for 2, 4 and 6 arms",
            "figure 2",
            "For every gap, some ensemble of more than two members has a lower MSE than one of two.",
            tuple(
                exactly(
                    f"smallest relative reduction of the double estimator's MSE, {r.arms} arms", r.gain.min()
                )
                for r in results
            ),
        )
    ]
