from ebql.paper.chains.curves import REGIMES, margins
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


def test_the_family_runs_in_every_regime_asked_for():
    heard = []
    curves = run_family(heard.append, regimes=REGIMES[:2], seeds=3, episodes=60)
    assert len(heard) == len(curves.all) == 2 * len(FAMILY)
    assert len({agent.label for agent in FAMILY}) == len(FAMILY)
    cells = margins(curves, agents=RELATIVES)
    assert len(cells) == 2 * len(RELATIVES)
    table = standings_table(curves)
    assert len(table.rows) == len(curves.all)
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_with_more_arms_q_learning_overestimates_more_and_ebql_does_not():
    heard = []
    points = run_arms(heard.append, arms=(2, 16), seeds=60, episodes=400)
    assert len(heard) == len(BANDIT_REGIMES) * len(FAMILY)
    by_key = {(p.agent.label, p.arms): p for p in points if p.regime == FULL_EXPLORATION}
    few, many = by_key[QLearning().label, 2], by_key[QLearning().label, 16]
    assert many.bias - many.half_width > few.bias + few.half_width > 0
    assert abs(by_key[EBQL(10).label, 16].bias) < many.bias / 5
    assert len(arms_table(points).rows) == len(points)
