from ebql.paper.chains.curves import META_CHAIN, REGIMES
from ebql.paper.family.maps import (
    BANDIT_REGIMES,
    CHAINS,
    FAMILY,
    RELATIVES,
    Standing,
    arms_parts,
    arms_points,
    arms_table,
    dominated,
    family_margins,
    family_parts,
    standings,
    standings_table,
)
from ebql.paper.family.outcomes import Outcomes
from ebql.tabular import EBQL, QLearning

FULL_EXPLORATION = REGIMES[2]


def test_the_family_runs_on_both_chains_in_every_regime_asked_for():
    heard = []
    parts = family_parts(REGIMES[:2])
    results = Outcomes(None, heard.append, seeds=3, episodes=60).of(parts)
    assert len(heard) == len(results) == len(CHAINS) * 2 * len(FAMILY)
    assert len({agent.label for agent in FAMILY}) == len(FAMILY)
    cells = family_margins(results)
    assert [(c.regime, c.agent) for c in cells] == [
        (p.regime, p.agent) for p in parts if p.world == META_CHAIN and p.agent in RELATIVES
    ]
    for cell in cells:
        rival = next(agent for agent in FAMILY if agent.label == cell.rival)
        rates = [
            results[p].rate.mean()
            for p in parts
            if p.world == META_CHAIN and p.regime == cell.regime and p.agent in (cell.agent, rival)
        ]
        assert abs(abs(rates[0] - rates[1]) - abs(cell.margin)) < 1e-12
    table = standings_table(results)
    assert len(table.rows) == len(results)
    assert {len(row) for row in table.rows} == {len(table.columns)}
    read = standings(table)
    assert [(row.world, row.agent) for row in read] == [(row[0], row[2]) for row in table.rows]
    assert [row.rate for row in read] == [row[4] for row in table.rows]


def test_with_more_arms_q_learning_overestimates_more_and_ebql_does_not():
    parts = arms_parts((2, 16))
    assert len(parts) == len(BANDIT_REGIMES) * len(FAMILY) * 2
    wanted = [part for part in parts if part.agent in (QLearning(), EBQL(10))]
    points = arms_points(Outcomes(None, lambda _: None, seeds=60, episodes=400).of(wanted))
    by_key = {(p.agent.label, p.arms): p for p in points if p.regime == FULL_EXPLORATION}
    few, many = by_key[QLearning().label, 2], by_key[QLearning().label, 16]
    assert many.bias - many.half_width > few.bias + few.half_width > 0
    assert abs(by_key[EBQL(10).label, 16].bias) < many.bias / 5
    assert len(arms_table(points).rows) == len(points)


def test_a_table_is_dominated_by_one_that_chooses_better_and_errs_less():
    good, poor = (
        Standing("w", "r", "good", 0.9, 0.01, -0.1, 0.02),
        Standing("w", "r", "poor", 0.8, 0.01, 0.3, 0.02),
    )
    elsewhere = poor._replace(regime="s"), poor._replace(world="v")  # nobody better in these
    assert dominated([good, poor, *elsewhere]) == {"good": 0, "poor": 1}
    close = good._replace(rate=0.815)  # the intervals of the rates touch
    biased = good._replace(bias=-0.27)  # the intervals of |bias| touch
    assert dominated([close, poor]) == dominated([biased, poor]) == {"good": 0, "poor": 0}
