"""Every claim on courses made up by hand, so that each verdict is known beforehand, and its opposite too."""

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
    Course,
    Courses,
    margins,
)
from ebql.paper.ledger import Verdict
from ebql.paper.tables import figure_5_table
from ebql.tabular import Group, Metric

EPISODES = np.array([25, 50, 100, 500, 1000, 3000, 5000])
SEEDS = 20


def made_up(rates, biases, early=0.0, fading=1.0):
    """Courses of two regimes in which an agent's rate and bias depend on the world alone.

    `rates[world][label]` and `biases[metric, world][label]` are the levels; `early` is the bias of the
    first 100 episodes; the bias of episode 1000 is `fading` times the last one.
    """
    rng = np.random.default_rng(0)

    def series(level, noise=0.01):
        return (level + noise * rng.normal(size=(SEEDS, len(EPISODES)))).astype(np.float32)

    courses = []
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
                courses.append(Course(regime, world, agent, EPISODES, metrics))
    return Courses(courses)


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


def verdicts(courses):
    claims = figure_3_claims(courses) + figure_5_claims(courses)
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


def test_figure_5_shows_the_optimal_action_and_no_other_bias():
    courses = made_up(
        rates={world: levels(0.5, 0.5, (0.5,) * 5) for world in WORLDS},
        biases={world: levels(0.0, 0.0, (0.0,) * 5) for world in WORLDS},
    )
    for course in courses.all:
        course.metrics[Metric.BIAS_OPTIMAL, Group.POSITIVE][:] = 7.0
    rows = [row for row in figure_5_table(courses).rows if row[1] == "positive"]
    assert rows
    assert {row[5] for row in rows} == {7.0}


def test_worlds_and_regimes_are_what_they_are_called():
    means = {name: [d.mean for d in world.decisions] for name, world in WORLDS.items()}
    assert means[NEGATIVE_CHAIN] == [-0.2]
    assert means[POSITIVE_CHAIN] == [0.2]
    assert means[NEUTRAL_CHAIN] == [0.0]
    named = {regime.epsilon_name: regime.epsilon for regime in REGIMES}
    assert {name: (s.scale, s.power) for name, s in named.items()} == {
        "0.1": (0.1, 0.0),
        "0.3": (0.3, 0.0),
        "1": (1.0, 0.0),
        "1/√n(s)": (1.0, 0.5),
    }
    steps = {regime.alpha_name: (regime.alpha.scale, regime.alpha.power) for regime in REGIMES}
    assert steps == {"1/n^0.8": (1.0, 0.8), "1/n": (1.0, 1.0), "0.1": (0.1, 0.0)}
