"""What the paper claims of tables (section 6.1, figures 3 and 5), each claim made measurable."""

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
    Courses,
    Regime,
)
from ebql.paper.ledger import Claim, Evidence, by_seeds, weakest
from ebql.tabular import Agent, Group, Metric, Schedule

Floats = NDArray[np.float64]

SMALLEST, LARGEST = ENSEMBLES[0], ENSEMBLES[-1]
EARLY_EPISODES, MIDDLE_EPISODE = 100, 1000
# The paper does not define its correct-action rate: the greedy choice tells what was learnt.
RATE = Metric.GREEDY_CORRECT


def figure_3_claims(courses: Courses) -> list[Claim]:
    """What section 6.1 says of correct-action rates, averaged over all episodes, regime by regime."""

    def rate(
        regime: Regime, world: str, agent: Agent, group: Group = Group.ALL, metric: Metric = RATE
    ) -> Floats:
        return courses.get(regime, world, agent).average(metric, group)

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
        return Claim(name, "figure 3", statement, tuple(evidence(r) for r in courses.regimes), note)

    def others(agent: Agent) -> list[Agent]:
        return [a for a in AGENTS if a is not agent]

    explores_by_choice = [r for r in courses.regimes if r.epsilon != Schedule(1.0)]
    return [
        claim(
            "Q-learning beats double Q-learning where risk pays",
            "With mean +0.2 double Q-learning chooses right less often than Q-learning.",
            lambda r: beats(r, POSITIVE_CHAIN, QL, [DQL]),
        ),
        claim(
            "double Q-learning beats Q-learning where risk costs",
            "With mean -0.2 double Q-learning chooses right more often than Q-learning.",
            lambda r: beats(r, NEGATIVE_CHAIN, DQL, [QL]),
        ),
        claim(
            "Q-learning is best where risk pays",
            "With mean +0.2 Q-learning chooses right more often than every other agent.",
            lambda r: beats(r, POSITIVE_CHAIN, QL, others(QL)),
            "The paper says that it excels; best of all is our strict reading.",
        ),
        claim(
            "double Q-learning is best where risk costs",
            "With mean -0.2 double Q-learning chooses right more often than every other agent.",
            lambda r: beats(r, NEGATIVE_CHAIN, DQL, others(DQL)),
            "The paper says that it excels; best of all is our strict reading, against the agent that comes "
            "closest. Ensembles are as safe.",
        ),
        claim(
            "EBQL beats double Q-learning on the Meta-Chain",
            f"Over the six chains {LARGEST.label} chooses right more often than double Q-learning.",
            lambda r: beats(r, META_CHAIN, LARGEST, [DQL]),
        ),
        claim(
            "EBQL beats Q-learning and double Q-learning on the Meta-Chain",
            f"Over the six chains {LARGEST.label} chooses right more often than either.",
            lambda r: beats(r, META_CHAIN, LARGEST, [QL, DQL]),
            "The regime map shows every ensemble size.",
        ),
        Claim(
            "EBQL beats both, counted as it behaves",
            "figure 3",
            "The same, for the ε-greedy action instead of the greedy one; the paper does not say which.",
            tuple(
                beats(r, META_CHAIN, LARGEST, [QL, DQL], Metric.BEHAVIOUR_CORRECT) for r in explores_by_choice
            ),
            "Without ε = 1, where all agents behave alike.",
        ),
        claim(
            "25 members are better than 3",
            f"On the Meta-Chain {LARGEST.label} chooses right more often than {SMALLEST.label}.",
            lambda r: beats(r, META_CHAIN, LARGEST, [SMALLEST]),
        ),
        claim(
            "every enlargement of the ensemble is an improvement",
            "On the Meta-Chain the rate rises at every step of K = 3, 7, 10, 15, 25.",
            lambda r: weakest(beats(r, META_CHAIN, large, [small]) for small, large in pairwise(ENSEMBLES)),
            "The paper says that performance improves as the ensemble grows; step by step is our strict "
            "reading, against the step that rises least.",
        ),
        claim(
            "25 members are better than 3 where risk pays",
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
    """What sections 6.1 and 7 say of the bias of the chains' values, regime by regime."""

    def final(
        regime: Regime, agent: Agent, metric: Metric = Metric.BIAS_OPTIMAL, world: str = META_CHAIN
    ) -> Floats:
        return courses.get(regime, world, agent).final(metric)

    def middle(regime: Regime, agent: Agent) -> Floats:
        """The bias of the optimal action after `MIDDLE_EPISODE` episodes, `(seeds,)`."""
        course = courses.get(regime, META_CHAIN, agent)
        record = int(np.searchsorted(course.episodes, MIDDLE_EPISODE))
        last = len(course.episodes) - 1
        values = course.metrics[Metric.BIAS_OPTIMAL, Group.ALL][:, min(record, last)]
        return values.astype(np.float64)

    def early(regime: Regime, metric: Metric, group: Group = Group.ALL) -> Evidence:
        """The first episodes' bias of double Q-learning or the largest ensemble, whichever is lower."""
        evidence = []
        for agent in (DQL, LARGEST):
            course = courses.get(regime, META_CHAIN, agent)
            values = course.metrics[metric, group][:, course.episodes <= EARLY_EPISODES]
            per_seed = values.mean(1, dtype=np.float64)
            evidence.append(by_seeds(regime.name, f"early bias of {agent.label}", per_seed))
        return weakest(evidence)

    def less_biased(regime: Regime, small: Agent, bigs: Sequence[Agent], **of: Any) -> Evidence:
        return weakest(
            _smaller_in_size(
                regime.name,
                f"|bias of {big.label}| - |bias of {small.label}|",
                final(regime, big, **of),
                final(regime, small, **of),
            )
            for big in bigs
        )

    def claim(name: str, statement: str, evidence: Callable[[Regime], Evidence], note: str = "") -> Claim:
        return Claim(name, "figure 5", statement, tuple(evidence(r) for r in courses.regimes), note)

    neutral: dict[str, Any] = {"metric": Metric.BIAS_RISKY, "world": NEUTRAL_CHAIN}
    zero_tables = (
        "Zero tables count as bias for as long as a member's entries are new, and 25 members take 25 times "
        "as long to fill; the chain of mean 0, where zero is exact, tells the rule's own bias."
    )
    return [
        claim(
            "Q-learning ends with a positive bias",
            "After the last episode Q-learning's value of the optimal action is too high.",
            lambda r: by_seeds(r.name, "bias of QL", final(r, QL)),
        ),
        claim(
            "double Q-learning ends with a negative bias",
            "After the last episode double Q-learning's value of the optimal action is too low.",
            lambda r: by_seeds(r.name, "bias of DQL", final(r, DQL), "<"),
        ),
        claim(
            "the biases of Q-learning and double Q-learning shrink to zero",
            f"Both are smaller in size after the last episode than after {MIDDLE_EPISODE}.",
            lambda r: weakest(
                _smaller_in_size(r.name, f"|bias of {a.label}|, earlier - later", middle(r, a), final(r, a))
                for a in (QL, DQL)
            ),
        ),
        claim(
            "EBQL ends with a negative bias",
            f"After the last episode {LARGEST.label}'s value of the optimal action is too low.",
            lambda r: by_seeds(r.name, f"bias of {LARGEST.label}", final(r, LARGEST), "<"),
            zero_tables,
        ),
        claim(
            "EBQL underestimates where zero is exact",
            f"On a chain of mean 0 {SMALLEST.label}'s value of the risky action ends too low.",
            lambda r: by_seeds(r.name, f"bias of {SMALLEST.label}", final(r, SMALLEST, **neutral), "<"),
            "All actions of B are alike, so uniform exploration gives lemma 1 nothing to underestimate; "
            "pessimism comes from leaving alone what looks bad.",
        ),
        claim(
            "the bias of EBQL shrinks with the ensemble",
            f"After the last episode the bias of {LARGEST.label} is smaller in size "
            f"than that of {SMALLEST.label}.",
            lambda r: less_biased(r, LARGEST, [SMALLEST]),
            zero_tables,
        ),
        claim(
            "the bias of EBQL shrinks with the ensemble where zero is exact",
            f"The same for the risky action of a chain of mean 0: {LARGEST.label} against {SMALLEST.label}.",
            lambda r: less_biased(r, LARGEST, [SMALLEST], **neutral),
        ),
        claim(
            "EBQL is less biased than double Q-learning",
            f"After the last episode the bias of {LARGEST.label} is smaller in size than "
            "that of double Q-learning.",
            lambda r: less_biased(r, LARGEST, [DQL]),
            zero_tables,
        ),
        claim(
            "EBQL is less biased than Q-learning and double Q-learning",
            f"After the last episode the bias of {LARGEST.label} is smaller in size than that of either.",
            lambda r: less_biased(r, LARGEST, [QL, DQL]),
            "Said in the paper's summary. " + zero_tables,
        ),
        claim(
            "zero tables bias the optimal action upwards at first",
            f"Over the first {EARLY_EPISODES} episodes double Q-learning and EBQL "
            "value the optimal action too high.",
            lambda r: early(r, Metric.BIAS_OPTIMAL),
            "Where risk costs, the optimal action never pays anything and zero is exact; where it pays, "
            "zero is too low. So for the optimal action a zero start can only look pessimistic.",
        ),
        claim(
            "zero tables bias the state's value upwards at first",
            f"Over the first {EARLY_EPISODES} episodes the largest value of A is too high "
            "with double Q-learning and EBQL.",
            lambda r: early(r, Metric.BIAS_MAX),
            "The same claim, read as the bias of max over actions.",
        ),
        claim(
            "zero tables bias a costly risk upwards at first",
            f"Over the first {EARLY_EPISODES} episodes double Q-learning and EBQL value the risky action "
            "too high on the chains where it costs.",
            lambda r: early(r, Metric.BIAS_RISKY, Group.NEGATIVE),
            "The same claim, read where zero is optimistic.",
        ),
        claim(
            "Q-learning overestimates the risky action",
            "After the last episode Q-learning's value of the risky action is too high, over all chains.",
            lambda r: by_seeds(r.name, "bias of QL, risky action", final(r, QL, Metric.BIAS_RISKY)),
        ),
    ]


def _smaller_in_size(regime: str, quantity: str, big: Floats, small: Floats) -> Evidence:
    """Evidence for |mean of `small`| < |mean of `big`|, from one number a seed each.

    With the sign of `big` fixed, |small| < |big| says that ±big - small and ±big + small are both positive:
    two means over seeds, neither of which folds at zero.
    """
    towards = np.sign(big.mean()) * big
    return weakest(by_seeds(regime, quantity, towards + side * small) for side in (1, -1))
