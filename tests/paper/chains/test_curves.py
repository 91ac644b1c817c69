import numpy as np
import pytest

from ebql.paper.chains.claims import figure_3_claims, figure_5_claims
from ebql.paper.chains.curves import (
    AGENTS,
    META_CHAIN,
    NEGATIVE_CHAIN,
    POSITIVE_CHAIN,
    REGIMES,
    WORLDS,
    margins,
    run_course,
    run_courses,
)
from ebql.paper.ledger import Verdict
from ebql.paper.splits.claims import estimator_claims
from ebql.paper.tables import bias_table, figure_3_table, figure_5_table, final_table, regime_table
from ebql.tabular import Group, Metric


@pytest.fixture(scope="module")
def courses():
    """A small world of courses: two regimes, few seeds."""
    return run_courses(lambda _: None, regimes=REGIMES[:4:2], seeds=10, episodes=400)


def test_the_grid_is_the_whole_grid():
    assert len({regime.name for regime in REGIMES}) == len({regime.slug for regime in REGIMES}) == 12
    assert [agent.ensemble_size for agent in AGENTS] == [1, 2, 3, 7, 10, 15, 25]
    assert list(WORLDS)[:3] == [NEGATIVE_CHAIN, POSITIVE_CHAIN, META_CHAIN]


def test_every_claim_is_judged_in_every_regime(courses):
    claims = figure_3_claims(courses) + figure_5_claims(courses)
    assert len({claim.name for claim in claims}) == len(claims) >= 12
    behaving_alike = {courses.regimes[1].name}  # under ε = 1
    for claim in claims:
        judged = {e.regime for e in claim.evidence}
        assert judged | behaving_alike == {r.name for r in courses.regimes}


def test_the_theory_holds():
    assert {claim.verdict for claim in estimator_claims()} == {Verdict.HOLDS}


def test_tables_have_the_promised_columns(courses):
    columns = ("regime", "chain", "agent", "ensemble_size", "episode", "value", "interval")
    for table in (figure_3_table(courses), figure_5_table(courses)):
        assert table.columns == columns
        assert len(table.rows) == 2 * 3 * 7 * 16
        assert all(0 < row[4] <= 400 for row in table.rows)
    rates = [row[5] for row in figure_3_table(courses).rows]
    assert 0 <= min(rates) <= max(rates) <= 1
    assert len(final_table(courses).rows) == 2 * 7 * 5 * (1 + 1 + 1 + 3)
    assert len(bias_table(courses).rows) == 3 * 3 * 2 * 7 * 16


def test_margins_are_against_the_better_rival(courses):
    cells = margins(courses)
    assert len(regime_table(cells).rows) == 2 * 5
    for cell in cells:
        rates = {
            agent.label: courses.get(cell.regime, META_CHAIN, agent).average(Metric.GREEDY_CORRECT).mean()
            for agent in AGENTS[:2]
        }
        assert cell.margin == pytest.approx(cell.rate - rates[cell.rival])


def test_the_measured_rates_of_the_known_regimes():
    """Known from 200 seeds: uniform behaviour, α = 1/n^0.8, averaged over 5000 episodes."""
    known = {"QL": 0.675, "DQL": 0.890, "EBQL 7": 0.950}
    for agent in AGENTS:
        if agent.label in known:
            course = run_course(REGIMES[2], META_CHAIN, agent, seeds=30)
            rates = course.average(Metric.GREEDY_CORRECT)
            error = rates.std(ddof=1) / np.sqrt(30)
            assert abs(rates.mean() - known[agent.label]) < 4 * error + 0.005


def test_a_single_chain_has_no_groups_by_sign(courses):
    course = courses.get(courses.regimes[0], POSITIVE_CHAIN, AGENTS[0])
    assert {group for _, group in course.metrics} == {Group.ALL}
