import numpy as np
import pytest

from ebql.paper.chains.curves import (
    AGENTS,
    META_CHAIN,
    NEGATIVE_CHAIN,
    NEUTRAL_CHAIN,
    POSITIVE_CHAIN,
    REGIMES,
    WORLDS,
    margins,
    run_learning_curve,
)
from ebql.tabular import Group, Metric


def test_the_grid_is_the_whole_grid():
    assert len({regime.name for regime in REGIMES}) == len({regime.slug for regime in REGIMES}) == 12
    assert [agent.ensemble_size for agent in AGENTS] == [1, 2, 3, 7, 10, 15, 25]
    assert list(WORLDS)[:3] == [NEGATIVE_CHAIN, POSITIVE_CHAIN, META_CHAIN]


def test_margins_are_against_the_better_rival(curves):
    cells = margins(curves)
    assert len(cells) == 2 * 5
    for cell in cells:
        rates = {
            agent.label: curves.get(cell.regime, META_CHAIN, agent).average(Metric.GREEDY_CORRECT).mean()
            for agent in AGENTS[:2]
        }
        assert cell.margin == pytest.approx(cell.rate - rates[cell.rival])


def test_the_measured_rates_of_the_known_regimes():
    """Known from 200 seeds: uniform behaviour, α = 1/n^0.8, averaged over 5000 episodes."""
    known = {"QL": 0.675, "DQL": 0.890, "EBQL 7": 0.950}
    for agent in AGENTS:
        if agent.label in known:
            curve = run_learning_curve(REGIMES[2], META_CHAIN, agent, seeds=30)
            rates = curve.average(Metric.GREEDY_CORRECT)
            error = rates.std(ddof=1) / np.sqrt(30)
            assert abs(rates.mean() - known[agent.label]) < 4 * error + 0.005


def test_a_single_chain_has_no_groups_by_sign(curves):
    curve = curves.get(curves.regimes[0], POSITIVE_CHAIN, AGENTS[0])
    assert {group for _, group in curve.metrics} == {Group.ALL}


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
