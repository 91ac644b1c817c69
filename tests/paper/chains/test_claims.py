"""Every claim on made-up learning curves for which its verdict is known."""

import numpy as np
import pytest

from ebql.paper.chains.claims import figure_3_claims, figure_5_claims
from ebql.paper.chains.curves import (
    AGENTS,
    DQL,
    ENSEMBLES,
    META_CHAIN,
    NEGATIVE_CHAIN,
    NEUTRAL_CHAIN,
    POSITIVE_CHAIN,
    QL,
    REGIMES,
    WORLDS,
    LearningCurve,
    LearningCurves,
    margins,
)
from ebql.paper.ledger import Verdict
from ebql.tabular import Group, Metric

EPISODES = np.array([25, 50, 100, 500, 1000, 3000, 5000])
SEEDS = 20


def made_up(rates, biases, early=0.0, fading=1.0):
    """Return learning curves of two regimes in which the rate and bias of an agent depend on the world alone.

    `rates[world][label]` and `biases[metric, world][label]` are the levels; `early` is the bias of the
    first 100 episodes; the bias of episode 1000 is `fading` times the last one.
    """
    rng = np.random.default_rng(0)

    def series(level, noise=0.01):
        return (level + noise * rng.normal(size=(SEEDS, len(EPISODES)))).astype(np.float32)

    curves = []
    for regime in REGIMES[:2]:
        for world in WORLDS:
            for agent in AGENTS:
                metrics = {}
                for group in Group:
                    rate = rates[world][agent.label]
                    metrics[Metric.GREEDY_CORRECT, group] = series(rate)
                    metrics[Metric.BEHAVIOUR_CORRECT, group] = series(rate)
                    for metric in (Metric.BIAS_OPTIMAL, Metric.BIAS_RISKY, Metric.BIAS_MAX):
                        bias = series(biases[world][agent.label])
                        bias[:, EPISODES <= 100] = early + 0.01 * rng.normal(size=(SEEDS, 3))
                        bias[:, EPISODES == 1000] *= fading
                        metrics[metric, group] = bias
                curves.append(LearningCurve(regime, world, agent, EPISODES, metrics))
    return LearningCurves(curves)


def levels(ql, dql, ensembles):
    return {QL.label: ql, DQL.label: dql} | {
        agent.label: value for agent, value in zip(ENSEMBLES, ensembles, strict=True)
    }


AS_CLAIMED = made_up(
    rates={
        POSITIVE_CHAIN: levels(0.9, 0.2, (0.3, 0.4, 0.5, 0.6, 0.7)),
        NEGATIVE_CHAIN: levels(0.2, 0.9, (0.8, 0.7, 0.6, 0.5, 0.4)),
        META_CHAIN: levels(0.5, 0.4, (0.6, 0.7, 0.75, 0.8, 0.9)),
        NEUTRAL_CHAIN: levels(0.5, 0.5, (0.5,) * 5),
    },
    biases={
        world: levels(0.3, -0.5, (-0.4, -0.35, -0.3, -0.25, -0.2 if world != META_CHAIN else -0.1))
        for world in WORLDS
    },
    early=0.2,
    fading=2.0,
)
THE_REVERSE = made_up(
    rates={
        POSITIVE_CHAIN: levels(0.2, 0.9, (0.7, 0.6, 0.5, 0.4, 0.3)),
        NEGATIVE_CHAIN: levels(0.9, 0.2, (0.4, 0.5, 0.6, 0.7, 0.8)),
        META_CHAIN: levels(0.8, 0.7, (0.6, 0.5, 0.45, 0.4, 0.3)),
        NEUTRAL_CHAIN: levels(0.5, 0.5, (0.5,) * 5),
    },
    biases={world: levels(-0.1, 0.2, (0.25, 0.3, 0.35, 0.4, 0.5)) for world in WORLDS},
    early=-0.2,
    fading=0.5,
)


def verdicts(curves):
    claims = figure_3_claims(curves) + figure_5_claims(curves)
    return {claim.name: claim.verdict for claim in claims}


NAMES = list(verdicts(AS_CLAIMED))


@pytest.mark.parametrize("name", NAMES)
def test_each_claim_holds_where_it_is_true(name):
    assert verdicts(AS_CLAIMED)[name] is Verdict.HOLDS


@pytest.mark.parametrize("name", NAMES)
def test_each_claim_fails_where_it_is_false(name):
    assert verdicts(THE_REVERSE)[name] is Verdict.FAILS


def test_the_map_shows_the_rival_that_is_harder_to_beat():
    for cell in margins(AS_CLAIMED):
        assert cell.rival == QL.label
        assert cell.margin == pytest.approx(cell.rate - 0.5, abs=0.02)


def test_every_claim_is_judged_in_every_regime(curves):
    claims = figure_3_claims(curves) + figure_5_claims(curves)
    assert len({claim.name for claim in claims}) == len(claims) >= 12
    behaving_alike = {curves.regimes[1].name}  # under ε = 1
    for claim in claims:
        judged = {e.regime for e in claim.evidence}
        assert judged | behaving_alike == {r.name for r in curves.regimes}
