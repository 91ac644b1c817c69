from ebql.paper.chains.curves import REGIMES, margins
from ebql.paper.family.maps import (
    BANDIT_REGIMES,
    FAMILY,
    RELATIVES,
    Standing,
    arms_table,
    dominated,
    run_arms,
    run_family,
    standings,
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
    read = standings(table)
    assert [row.agent for row in read] == [row[1] for row in table.rows]
    assert [row.rate for row in read] == [row[3] for row in table.rows]


def test_with_more_arms_q_learning_overestimates_more_and_ebql_does_not():
    heard = []
    points = run_arms(heard.append, arms=(2, 16), seeds=60, episodes=400)
    assert len(heard) == len(BANDIT_REGIMES) * len(FAMILY)
    by_key = {(p.agent.label, p.arms): p for p in points if p.regime == FULL_EXPLORATION}
    few, many = by_key[QLearning().label, 2], by_key[QLearning().label, 16]
    assert many.bias - many.half_width > few.bias + few.half_width > 0
    assert abs(by_key[EBQL(10).label, 16].bias) < many.bias / 5
    assert len(arms_table(points).rows) == len(points)


def test_a_table_is_dominated_by_one_that_chooses_better_and_errs_less():
    good, poor = Standing("r", "good", 0.9, 0.01, -0.1, 0.02), Standing("r", "poor", 0.8, 0.01, 0.3, 0.02)
    elsewhere = Standing("s", "poor", 0.8, 0.01, 0.3, 0.02)  # nobody better in this regime
    assert dominated([good, poor, elsewhere]) == {"good": 0, "poor": 1}
    close = good._replace(rate=0.815)  # the intervals of the rates touch
    biased = good._replace(bias=-0.27)  # the intervals of |bias| touch
    assert dominated([close, poor]) == dominated([biased, poor]) == {"good": 0, "poor": 0}
