import numpy as np
import pytest

from ebql.paper.chains.curves import META_CHAIN, REGIMES, margins
from ebql.paper.family.adaptive import (
    ADAPTIVE,
    FIXED,
    GAP,
    SPLIT_WORLDS,
    graded_meta_chain,
    run_splits,
    splits_table,
)
from ebql.paper.family.exploration import APART, COUPLED, WAYS, exploration_table, run_exploration
from ebql.paper.family.maps import (
    BANDIT_REGIMES,
    FAMILY,
    RELATIVES,
    arms_table,
    run_arms,
    run_family,
    standings_table,
)
from ebql.tabular import EBQL, QLearning

FULL_EXPLORATION = REGIMES[2]


def heard_of(run, **settings):
    heard = []
    return run(heard.append, **settings), heard


def test_the_family_runs_in_every_regime_asked_for():
    courses, heard = heard_of(run_family, regimes=REGIMES[:2], seeds=3, episodes=60)
    assert len(heard) == len(courses.all) == 2 * len(FAMILY)
    assert len({agent.label for agent in FAMILY}) == len(FAMILY)
    cells = margins(courses, agents=RELATIVES)
    assert len(cells) == 2 * len(RELATIVES)
    table = standings_table(courses)
    assert len(table.rows) == len(courses.all)
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_with_more_arms_q_learning_overestimates_more_and_ebql_does_not():
    points, heard = heard_of(run_arms, arms=(2, 16), seeds=60, episodes=400)
    assert len(heard) == len(BANDIT_REGIMES) * len(FAMILY)
    found = {(p.agent.label, p.arms): p for p in points if p.regime == FULL_EXPLORATION}
    few, many = found[QLearning().label, 2], found[QLearning().label, 16]
    assert many.bias - many.half_width > few.bias + few.half_width > 0
    assert abs(found[EBQL(10).label, 16].bias) < many.bias / 5
    assert len(arms_table(points).rows) == len(points)


def test_the_graded_chain_keeps_what_risk_is_worth():
    plain, graded = SPLIT_WORLDS[META_CHAIN], graded_meta_chain()
    for before, after in zip(plain.decisions, graded.decisions, strict=True):
        exact = graded.optimal_values(1.0)[after.state]
        assert exact[after.risky_action] == pytest.approx(before.mean)
        behind = graded.expected_rewards[after.state + 1, : graded.action_counts[after.state + 1]]
        np.testing.assert_allclose(behind, before.mean - GAP * (np.arange(len(behind)) > 0))


def test_every_split_is_set_against_the_adaptive_one():
    cells, heard = heard_of(run_splits, regimes=(FULL_EXPLORATION,), seeds=4, episodes=60)
    assert len(cells) == len(heard) == len(SPLIT_WORLDS) * (1 + len(FIXED))
    for cell in cells:
        itself = next(c for c in cells if c.world == cell.world and c.agent == ADAPTIVE)
        assert cell.rate_margin == pytest.approx(itself.rate - cell.rate)
        assert cell.error_margin == pytest.approx(cell.squared_error - itself.squared_error)
    fixed = [cell.mean_split for cell in cells if cell.agent != ADAPTIVE]
    assert fixed == [1, 2, 3, 4, 5] * len(SPLIT_WORLDS)
    assert len(splits_table(cells).rows) == len(cells)


def test_coupled_members_lie_closer_together_than_members_apart():
    found, heard = heard_of(run_exploration, seeds=20, episodes=300)
    assert len(heard) == len(found) == 2 * len(WAYS)
    spreads = {(e.agent.label, e.way, e.epsilon): e.spread for e in found}
    for way in WAYS:
        assert spreads[COUPLED.label, *way] < spreads[APART.label, *way]
    assert len(exploration_table(found).rows) == len(found)
