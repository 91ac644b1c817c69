"""The paper's claims about tabular agents (section 6.1, figures 3 and 5), each made measurable."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebql.paper.chains.curves import (
    AGENTS,
    DQL,
    ENSEMBLES,
    META_CHAIN,
    NEGATIVE_CHAIN,
    NEUTRAL_CHAIN,
    POSITIVE_CHAIN,
    QL,
    LearningCurves,
    Regime,
)
from ebql.paper.ledger import Claim, Evidence, by_seeds, weakest
from ebql.tabular import Agent, Group, Metric, Schedule

Floats = NDArray[np.float64]

SMALLEST, LARGEST = ENSEMBLES[0], ENSEMBLES[-1]
EARLY_EPISODES, MIDDLE_EPISODE = 100, 1000
# The paper does not define its correct-action rate. The greedy action shows what was learnt.
RATE = Metric.GREEDY_CORRECT


def figure_3_claims(curves: LearningCurves) -> list[Claim]:
    """Return the claims of section 6.1 about correct-action rates, averaged over all episodes."""

    def rate(
        regime: Regime, world: str, agent: Agent, group: Group = Group.ALL, metric: Metric = RATE
    ) -> Floats:
        return curves.get(regime, world, agent).average(metric, group)

    def beats(
        regime: Regime, world: str, winner: Agent, losers: Sequence[Agent], metric: Metric = RATE
    ) -> Evidence:
        return weakest(
            by_seeds(
                regime.name,
                f"{winner.label} - {loser.label}",
                rate(regime, world, winner, metric=metric) - rate(regime, world, loser, metric=metric),
            )
            for loser in losers
        )

    def claim(name: str, statement: str, evidence: Callable[[Regime], Evidence], note: str = "") -> Claim:
        return Claim(name, "figure 3", statement, tuple(evidence(r) for r in curves.regimes), note)

    def others(agent: Agent) -> list[Agent]:
        return [a for a in AGENTS if a is not agent]

    not_uniform = [r for r in curves.regimes if r.epsilon != Schedule(1.0)]
    return [
        claim(
            "Q-learning beats double Q-learning where risk pays",
            "With mean +0.2 double Q-learning chooses the correct action less often than Q-learning.",
            lambda r: beats(r, POSITIVE_CHAIN, QL, [DQL]),
        ),
        claim(
            "double Q-learning beats Q-learning where risk costs",
            "With mean -0.2 double Q-learning chooses the correct action more often than Q-learning.",
            lambda r: beats(r, NEGATIVE_CHAIN, DQL, [QL]),
        ),
        claim(
            "Q-learning is best where risk pays",
            "With mean +0.2 Q-learning chooses the correct action more often than every other agent.",
            lambda r: beats(r, POSITIVE_CHAIN, QL, others(QL)),
            "The paper says that Q-learning excels; that it beats every other agent is our strict reading.",
        ),
        claim(
            "double Q-learning is best where risk costs",
            "With mean -0.2 double Q-learning chooses the correct action more often than every other agent.",
            lambda r: beats(r, NEGATIVE_CHAIN, DQL, others(DQL)),
            "The paper says that double Q-learning excels; that it beats every other agent is our strict "
            "reading. The evidence is against the closest rival. Ensembles are equally safe.",
        ),
        claim(
            "EBQL beats double Q-learning on the Meta-Chain",
            f"On the Meta-Chain {LARGEST.label} chooses the correct action more often than double "
            "Q-learning.",
            lambda r: beats(r, META_CHAIN, LARGEST, [DQL]),
        ),
        claim(
            "EBQL beats Q-learning and double Q-learning on the Meta-Chain",
            f"On the Meta-Chain {LARGEST.label} chooses the correct action more often than Q-learning and "
            "than double Q-learning.",
            lambda r: beats(r, META_CHAIN, LARGEST, [QL, DQL]),
            "The regime map shows every ensemble size.",
        ),
        Claim(
            "EBQL beats both, counted as it behaves",
            "figure 3",
            "The previous claim, measured on the ε-greedy action instead of the greedy one. The paper does "
            "not say which it used.",
            tuple(beats(r, META_CHAIN, LARGEST, [QL, DQL], Metric.BEHAVIOUR_CORRECT) for r in not_uniform),
            "ε = 1 is left out: all agents behave identically there.",
        ),
        claim(
            "25 members are better than 3",
            f"On the Meta-Chain {LARGEST.label} chooses the correct action more often than {SMALLEST.label}.",
            lambda r: beats(r, META_CHAIN, LARGEST, [SMALLEST]),
        ),
        claim(
            "every enlargement of the ensemble is an improvement",
            "On the Meta-Chain the rate rises at every step of K = 3, 7, 10, 15, 25.",
            lambda r: weakest(beats(r, META_CHAIN, large, [small]) for small, large in pairwise(ENSEMBLES)),
            "The paper says that performance improves as the ensemble grows; that it improves at every step "
            "is our strict reading. The evidence is from the step with the smallest improvement.",
        ),
        claim(
            "25 members are better than 3 where risk pays",
            f"On the chains with a positive mean {LARGEST.label} chooses the correct action more often "
            f"than {SMALLEST.label}.",
            lambda r: by_seeds(
                r.name,
                f"{LARGEST.label} - {SMALLEST.label}",
                rate(r, META_CHAIN, LARGEST, Group.POSITIVE) - rate(r, META_CHAIN, SMALLEST, Group.POSITIVE),
            ),
        ),
    ]


def figure_5_claims(curves: LearningCurves) -> list[Claim]:
    """Return the claims of sections 6.1 and 7 about the bias of the values on the chains."""

    def final(
        regime: Regime, agent: Agent, metric: Metric = Metric.BIAS_OPTIMAL, world: str = META_CHAIN
    ) -> Floats:
        return curves.get(regime, world, agent).final(metric)

    def middle(regime: Regime, agent: Agent) -> Floats:
        """Return the bias of the optimal action after `MIDDLE_EPISODE` episodes, (seeds,)."""
        curve = curves.get(regime, META_CHAIN, agent)
        record = int(np.searchsorted(curve.episodes, MIDDLE_EPISODE))
        last = len(curve.episodes) - 1
        values = curve.metrics[Metric.BIAS_OPTIMAL, Group.ALL][:, min(record, last)]
        return values.astype(np.float64)

    def early(regime: Regime, metric: Metric, group: Group = Group.ALL) -> Evidence:
        """Return the bias over the first episodes of double Q-learning or EBQL, whichever is lower."""
        evidence = []
        for agent in (DQL, LARGEST):
            curve = curves.get(regime, META_CHAIN, agent)
            values = curve.metrics[metric, group][:, curve.episodes <= EARLY_EPISODES]
            per_seed = values.mean(1, dtype=np.float64)
            evidence.append(by_seeds(regime.name, f"early bias of {agent.label}", per_seed))
        return weakest(evidence)

    def less_biased(regime: Regime, small: Agent, bigs: Sequence[Agent], **of: Any) -> Evidence:
        return weakest(
            _smaller_in_magnitude(
                regime.name,
                f"|bias of {big.label}| - |bias of {small.label}|",
                final(regime, big, **of),
                final(regime, small, **of),
            )
            for big in bigs
        )

    def claim(name: str, statement: str, evidence: Callable[[Regime], Evidence], note: str = "") -> Claim:
        return Claim(name, "figure 5", statement, tuple(evidence(r) for r in curves.regimes), note)

    neutral: dict[str, Any] = {"metric": Metric.BIAS_RISKY, "world": NEUTRAL_CHAIN}
    zero_tables = (
        "Entries that a member has not updated yet are still 0, which counts as bias, and 25 members take "
        "25 times as long to update. On the chain of mean 0, where 0 is exact, only the bias of the update "
        "rule is left."
    )
    return [
        claim(
            "Q-learning ends with a positive bias",
            "After the last episode Q-learning overestimates the optimal action.",
            lambda r: by_seeds(r.name, "bias of QL", final(r, QL)),
        ),
        claim(
            "double Q-learning ends with a negative bias",
            "After the last episode double Q-learning underestimates the optimal action.",
            lambda r: by_seeds(r.name, "bias of DQL", final(r, DQL), "<"),
        ),
        claim(
            "the biases of Q-learning and double Q-learning shrink to zero",
            "Both biases are smaller in magnitude after the last episode than after episode "
            f"{MIDDLE_EPISODE}.",
            lambda r: weakest(
                _smaller_in_magnitude(
                    r.name, f"|bias of {a.label}|, earlier - later", middle(r, a), final(r, a)
                )
                for a in (QL, DQL)
            ),
        ),
        claim(
            "EBQL ends with a negative bias",
            f"After the last episode {LARGEST.label} underestimates the optimal action.",
            lambda r: by_seeds(r.name, f"bias of {LARGEST.label}", final(r, LARGEST), "<"),
            zero_tables,
        ),
        claim(
            "EBQL underestimates where zero is exact",
            f"On a chain of mean 0 {SMALLEST.label} ends up underestimating the risky action.",
            lambda r: by_seeds(r.name, f"bias of {SMALLEST.label}", final(r, SMALLEST, **neutral), "<"),
            "All actions of B have the same mean, so under uniform exploration lemma 1 predicts no bias. An "
            "underestimate comes from no longer trying actions that look bad.",
        ),
        claim(
            "the bias of EBQL shrinks with the ensemble",
            f"After the last episode the bias of {LARGEST.label} is smaller in magnitude "
            f"than that of {SMALLEST.label}.",
            lambda r: less_biased(r, LARGEST, [SMALLEST]),
            zero_tables,
        ),
        claim(
            "the bias of EBQL shrinks with the ensemble where zero is exact",
            f"On a chain of mean 0 {LARGEST.label}'s value of the risky action ends less biased than "
            f"{SMALLEST.label}'s.",
            lambda r: less_biased(r, LARGEST, [SMALLEST], **neutral),
        ),
        claim(
            "EBQL is less biased than double Q-learning",
            f"After the last episode the bias of {LARGEST.label} is smaller in magnitude "
            "than that of double Q-learning.",
            lambda r: less_biased(r, LARGEST, [DQL]),
            zero_tables,
        ),
        claim(
            "EBQL is less biased than Q-learning and double Q-learning",
            f"After the last episode the bias of {LARGEST.label} is smaller in magnitude than "
            "that of Q-learning and that of double Q-learning.",
            lambda r: less_biased(r, LARGEST, [QL, DQL]),
            "The claim is in the paper's summary. " + zero_tables,
        ),
        claim(
            "zero tables bias the optimal action upwards at first",
            f"Over the first {EARLY_EPISODES} episodes double Q-learning and EBQL "
            "overestimate the optimal action.",
            lambda r: early(r, Metric.BIAS_OPTIMAL),
            "Where risk costs, the optimal action earns nothing and its initial value 0 is exact. Where "
            "risk pays, 0 is too low. So an initial value of 0 can only underestimate the optimal action.",
        ),
        claim(
            "zero tables bias the state's value upwards at first",
            f"Over the first {EARLY_EPISODES} episodes double Q-learning and EBQL "
            "overestimate the value of state A.",
            lambda r: early(r, Metric.BIAS_MAX),
            "The same claim, read as the bias of the maximum over actions.",
        ),
        claim(
            "zero tables bias a costly risk upwards at first",
            f"Over the first {EARLY_EPISODES} episodes double Q-learning and EBQL overestimate the risky "
            "action on the chains where risk costs.",
            lambda r: early(r, Metric.BIAS_RISKY, Group.NEGATIVE),
            "The same claim, read where an initial value of 0 is optimistic.",
        ),
        claim(
            "Q-learning overestimates the risky action",
            "After the last episode Q-learning overestimates the risky action, on average over all chains.",
            lambda r: by_seeds(r.name, "bias of QL, risky action", final(r, QL, Metric.BIAS_RISKY)),
        ),
    ]


def _smaller_in_magnitude(regime: str, quantity: str, big: Floats, small: Floats) -> Evidence:
    """Return evidence for |mean of `small`| < |mean of `big`|, from one number per seed each.

    With s the sign of the mean of `big`, |small| < |big| holds if s·big - small and s·big + small are both
    positive. Both are plain means over seeds, so no interval has to deal with the kink of |x| at 0.
    """
    positive_big = np.sign(big.mean()) * big
    return weakest(by_seeds(regime, quantity, positive_big + side * small) for side in (1, -1))
