"""What the paper claims of estimators and tables, each claim turned into something measured."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

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
from ebql.experiments.chains import (
    AGENTS,
    ENSEMBLES,
    META_CHAIN,
    NEGATIVE_CHAIN,
    POSITIVE_CHAIN,
    Courses,
    Regime,
)
from ebql.experiments.ledger import Claim, Evidence, by_seeds, exactly, weakest
from ebql.experiments.splits import SAMPLES, VARIANCE, BestSplits, SplitCurve
from ebql.tabular import Agent, Group, Metric

Floats = NDArray[np.float64]

STD = float(np.sqrt(VARIANCE))
QL, DQL = AGENTS[:2]
SMALLEST, LARGEST = ENSEMBLES[0], ENSEMBLES[-1]
EARLY_EPISODES = 100


def estimator_claims() -> list[Claim]:
    """Section 4 and appendices A to D, checked on grids of means, spreads and sample sizes."""
    grid = [([gap, 0.0], [STD, STD]) for gap in np.geomspace(1e-3, 2, 12)]
    grid += [([0.4, 0.3, 0.0, -0.5], [0.5, 1.0, 2.0, 0.1]), ([1.0, 0.9, 0.9, 0.2, 0.1, 0.0], [0.7] * 6)]
    splits = np.arange(1, SAMPLES)
    moments = [exact_moments(means, stds, SAMPLES, splits) for means, stds in grid]
    equal_arms = exact_moments([0.3, 0.3, 0.3], 1.0, SAMPLES, splits)

    single = min(float(single_moments(means, stds, SAMPLES).bias) / max(stds) for means, stds in grid)
    strict = max(float(np.max(m.bias)) for m in moments)

    rng = np.random.default_rng(0)
    samples = rng.normal(size=(200, 5, 60))
    proxy = max(
        float(np.abs(ensemble(samples, k).value - weighted_double(samples, 60 // k).value).max())
        for k in (2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)
    )

    def best_n_index(snr: float) -> int:
        return optimal_split([snr * STD / np.sqrt(SAMPLES), 0.0], STD, SAMPLES).n_index

    even_sizes = range(12, 202, 2)
    gaps = np.geomspace(1e-3, 30, 80)
    share = max(optimal_split([g, 0.0], STD, n).n_index / n for n in even_sizes for g in gaps * STD)
    return [
        Claim(
            "single estimator overestimates",
            "section 4, appendix D",
            "The largest sample mean is biased upwards.",
            (exactly("smallest bias on the grid, in units of the largest σ", single),),
        ),
        Claim(
            "ensemble estimator underestimates",
            "lemma 1",
            "The ensemble estimator is biased downwards, strictly so if and only if a worse arm can win.",
            (
                exactly("largest bias on the grid, where a worse arm can win", strict, "<"),
                exactly(
                    "largest size of bias of three equal arms, where none can",
                    np.abs(equal_arms.bias).max(),
                    "<",
                    1e-15,
                ),
            ),
        ),
        Claim(
            "proxy identity",
            "proposition 1",
            "An ensemble of K is the double estimator that selects with N/K samples.",
            (exactly("largest difference over 200 data sets and 11 sizes K", proxy, "<", 1e-12),),
        ),
        Claim(
            "bias, variance and MSE formulas",
            "section 4 (equation 5), appendix C",
            "The closed forms give the moments of the weighted double estimator.",
            tuple(_formulas_against_simulation()),
            note="The difference between formula and simulation, in standard errors of the simulation.",
        ),
        Claim(
            "large SNR: select with one sample",
            "proposition 2 (1)",
            "As the signal-to-noise ratio grows without bound, the best split tends to N₁ = 1.",
            (exactly("best N₁ at SNR 200, N = 100", best_n_index(200.0), "<", 2),),
            note="The paper proves (1) and (2) under each other's heading.",
        ),
        Claim(
            "small SNR: select with one sample",
            "proposition 2 (2)",
            "As the signal-to-noise ratio vanishes, the best split tends to N₁ = 1.",
            (exactly("best N₁ at SNR 0.01, N = 100", best_n_index(0.01), "<", 2),),
        ),
        Claim(
            "an even split is never best",
            "proposition 2 (3)",
            "For two arms of equal spread and any even N > 10 the best split uses fewer than N/2 samples.",
            (exactly("largest best share N₁/N over 95 even N and 80 gaps", share, "<", 0.5),),
        ),
        Claim(
            "product form of P(â* = a)",
            "appendix C (equation 8)",
            "The probability of selecting an arm is a product of normal distribution functions.",
            tuple(_product_form()),
            note="Right for two arms, as the paper derives it; with more the pairwise events are dependent, "
            "and figure 2, which has 4 and 6 arms, needs a one-dimensional integral.",
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


def _product_form() -> list[Evidence]:
    evidence = []
    for arms in (2, 4, 6):
        means = np.linspace(0.3, 0.0, arms)
        z = np.sqrt(20) * (means[:, None] - means) / (STD * np.sqrt(2))
        product = 2 * ndtr(z).prod(1)
        exact = exact_moments(means, STD, SAMPLES, 20).selection
        off = float(np.abs(product - exact).max())
        evidence.append(exactly(f"largest error, {arms} arms", off, "<", 1e-12))
    return evidence


def figure_1_claims(curves: Sequence[SplitCurve]) -> list[Claim]:
    """What the caption of figure 1 says."""
    best = np.array([curve.best for curve in curves]) / SAMPLES
    rises = np.diff(best)
    peak = int(best.argmax())
    return [
        Claim(
            "the best split rises to 0.4 and falls again",
            "figure 1",
            "With a growing gap the best share of selecting samples goes from 0 up to 0.4 and back to 0.",
            (
                exactly("smallest step before the peak", rises[:peak].min()),
                exactly("largest step after the peak", rises[peak:].max(), "<"),
                exactly("distance of the highest best share from 0.4", abs(best.max() - 0.4), "<", 0.02),
            ),
        )
    ]


def figure_2_claims(results: Sequence[BestSplits]) -> list[Claim]:
    """What section 4 says of figure 2."""
    return [
        Claim(
            "more than two members for 2, 4 and 6 arms",
            "figure 2",
            "Over the whole range of gaps an ensemble of more than two has a lower MSE than the even split.",
            tuple(
                exactly(
                    f"smallest gain in MSE, {r.arms} arms (best K from "
                    f"{r.ensemble_size.min()} to {r.ensemble_size.max()})",
                    1 - r.mse_ratio.max(),
                )
                for r in results
            ),
        )
    ]


def figure_3_claims(courses: Courses) -> list[Claim]:
    """What section 6.1 says of correct-action rates, averaged over all episodes, regime by regime."""
    metric = Metric.GREEDY_CORRECT

    def rate(regime: Regime, world: str, agent: Agent, group: Group = Group.ALL) -> Floats:
        return courses.get(regime, world, agent).average(metric, group)

    def beats(regime: Regime, world: str, winner: Agent, losers: Sequence[Agent]) -> Evidence:
        return weakest(
            by_seeds(
                regime.name,
                f"{winner.label} - {loser.label}",
                rate(regime, world, winner) - rate(regime, world, loser),
            )
            for loser in losers
        )

    def claim(name: str, statement: str, evidence: Callable[[Regime], Evidence], note: str = "") -> Claim:
        return Claim(name, "figure 3", statement, tuple(evidence(r) for r in courses.regimes), note)

    def others(agent: Agent) -> list[Agent]:
        return [a for a in AGENTS if a is not agent]

    return [
        claim(
            "Q-learning is best where risk pays",
            "With mean +0.2 Q-learning chooses right more often than every other agent.",
            lambda r: beats(r, POSITIVE_CHAIN, QL, others(QL)),
        ),
        claim(
            "double Q-learning is best where risk costs",
            "With mean -0.2 double Q-learning chooses right more often than every other agent.",
            lambda r: beats(r, NEGATIVE_CHAIN, DQL, others(DQL)),
            "Against the agent that comes closest: the larger ensembles are as safe.",
        ),
        claim(
            "double Q-learning beats Q-learning where risk costs",
            "With mean -0.2 double Q-learning chooses right more often than Q-learning.",
            lambda r: beats(r, NEGATIVE_CHAIN, DQL, [QL]),
        ),
        claim(
            "double Q-learning suffers where risk pays",
            "With mean +0.2 double Q-learning chooses right less often than Q-learning.",
            lambda r: beats(r, POSITIVE_CHAIN, QL, [DQL]),
        ),
        claim(
            "EBQL beats Q-learning and double Q-learning on the Meta-Chain",
            f"Over the six chains {LARGEST.label} chooses right more often than either.",
            lambda r: beats(r, META_CHAIN, LARGEST, [QL, DQL]),
            "The regime map shows every ensemble size.",
        ),
        claim(
            "EBQL beats double Q-learning on the Meta-Chain",
            f"Over the six chains {LARGEST.label} chooses right more often than double Q-learning.",
            lambda r: beats(r, META_CHAIN, LARGEST, [DQL]),
        ),
        claim(
            "a larger ensemble is better",
            f"On the Meta-Chain {LARGEST.label} chooses right more often than {SMALLEST.label}.",
            lambda r: beats(r, META_CHAIN, LARGEST, [SMALLEST]),
        ),
        claim(
            "every enlargement of the ensemble is an improvement",
            "On the Meta-Chain the rate rises at every step of K = 3, 7, 10, 15, 25.",
            lambda r: weakest(beats(r, META_CHAIN, large, [small]) for small, large in pairwise(ENSEMBLES)),
            "Against the step that rises least.",
        ),
        claim(
            "a larger ensemble helps where risk pays",
            f"On the chains with a positive mean {LARGEST.label} chooses right more often "
            f"than {SMALLEST.label}.",
            lambda r: by_seeds(
                r.name,
                f"{LARGEST.label} - {SMALLEST.label}",
                rate(r, META_CHAIN, LARGEST, Group.POSITIVE) - rate(r, META_CHAIN, SMALLEST, Group.POSITIVE),
            ),
        ),
    ]


def figure_5_claims(courses: Courses) -> list[Claim]:
    """What section 6.1 says of the bias on the Meta-Chain, regime by regime."""

    def final(regime: Regime, agent: Agent, metric: Metric, group: Group = Group.ALL) -> Floats:
        return courses.get(regime, META_CHAIN, agent).final(metric, group)

    def early(regime: Regime, metric: Metric, group: Group = Group.ALL) -> Evidence:
        """The first episodes' bias of double Q-learning or the largest ensemble, whichever is lower."""
        evidence = []
        for agent in (DQL, LARGEST):
            course = courses.get(regime, META_CHAIN, agent)
            values = course.metrics[metric, group][:, course.episodes <= EARLY_EPISODES]
            per_seed = values.mean(1, dtype=np.float64)
            evidence.append(by_seeds(regime.name, f"early bias of {agent.label}", per_seed))
        return weakest(evidence)

    def claim(name: str, statement: str, evidence: Callable[[Regime], Evidence], note: str = "") -> Claim:
        return Claim(name, "figure 5", statement, tuple(evidence(r) for r in courses.regimes), note)

    optimal, risky, largest_value = Metric.BIAS_OPTIMAL, Metric.BIAS_RISKY, Metric.BIAS_MAX
    return [
        claim(
            "Q-learning ends with a positive bias",
            "After the last episode Q-learning's value of the optimal action is too high.",
            lambda r: by_seeds(r.name, "bias of QL", final(r, QL, optimal)),
        ),
        claim(
            "double Q-learning ends with a negative bias",
            "After the last episode double Q-learning's value of the optimal action is too low.",
            lambda r: by_seeds(r.name, "bias of DQL", final(r, DQL, optimal), "<"),
        ),
        claim(
            "EBQL ends with a negative bias",
            f"After the last episode {LARGEST.label}'s value of the optimal action is too low.",
            lambda r: by_seeds(r.name, f"bias of {LARGEST.label}", final(r, LARGEST, optimal), "<"),
        ),
        claim(
            "the bias of EBQL shrinks with the ensemble",
            f"After the last episode the bias of {LARGEST.label} is smaller in size "
            f"than that of {SMALLEST.label}.",
            lambda r: _smaller_bias(
                r, SMALLEST, final(r, SMALLEST, optimal), LARGEST, final(r, LARGEST, optimal)
            ),
            "In size of the mean bias over seeds. Zero tables count as bias for as long as a member's "
            "entries are new, and 25 members take 25 times as long to fill.",
        ),
        claim(
            "EBQL is less biased than double Q-learning",
            f"After the last episode the bias of {LARGEST.label} is smaller in size than "
            "that of double Q-learning.",
            lambda r: _smaller_bias(r, DQL, final(r, DQL, optimal), LARGEST, final(r, LARGEST, optimal)),
        ),
        claim(
            "zero tables bias the optimal action upwards at first",
            f"Over the first {EARLY_EPISODES} episodes double Q-learning and EBQL "
            "value the optimal action too high.",
            lambda r: early(r, optimal),
            "Where risk costs, the optimal action never pays anything and zero is exact; where it pays, "
            "zero is too low. So for the optimal action a zero start can only look pessimistic.",
        ),
        claim(
            "zero tables bias the state's value upwards at first",
            f"Over the first {EARLY_EPISODES} episodes the largest value of A is too high "
            "with double Q-learning and EBQL.",
            lambda r: early(r, largest_value),
            "The same claim, read as the bias of max over actions.",
        ),
        claim(
            "zero tables bias a costly risk upwards at first",
            f"Over the first {EARLY_EPISODES} episodes double Q-learning and EBQL value the risky action "
            "too high on the chains where it costs.",
            lambda r: early(r, risky, Group.NEGATIVE),
            "The same claim, read where zero is optimistic.",
        ),
        claim(
            "Q-learning overestimates the risky action",
            "After the last episode Q-learning's value of the risky action is too high, over all chains.",
            lambda r: by_seeds(r.name, "bias of QL, risky action", final(r, QL, risky)),
        ),
    ]


def _smaller_bias(regime: Regime, big: Agent, big_bias: Floats, small: Agent, small_bias: Floats) -> Evidence:
    """Evidence for |mean bias of `small`| < |mean bias of `big`|.

    The size of a mean is linear in the seeds once its sign is fixed, so the interval is Student's.
    """
    big_size = np.sign(big_bias.mean()) * big_bias
    small_size = np.sign(small_bias.mean()) * small_bias
    return by_seeds(regime.name, f"|bias of {big.label}| - |bias of {small.label}|", big_size - small_size)
