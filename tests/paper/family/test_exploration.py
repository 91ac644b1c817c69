from ebql.paper.family.exploration import (
    BEHAVIOURS,
    COUPLED,
    EXPLORING,
    UNCOUPLED,
    exploration_results,
    exploration_table,
)
from ebql.paper.family.maps import FAMILY
from ebql.paper.family.outcomes import Outcomes


def test_coupled_members_differ_less_than_uncoupled_members():
    outcomes = Outcomes(None, lambda _: None, seeds=20, episodes=300)
    results = exploration_results(outcomes.of([exploring.part for exploring in EXPLORING]))
    spreads = {(e.agent.label, e.acting_rule, e.epsilon): e.spread for e in results}
    for behaviour in BEHAVIOURS:
        assert spreads[COUPLED.label, *behaviour] < spreads[UNCOUPLED.label, *behaviour]
    assert len(exploration_table(results).rows) == len(results) == len(EXPLORING)


def test_every_method_explores_and_single_tables_only_by_their_values():
    for agent in FAMILY:
        ways = [(e.acting_rule, e.epsilon) for e in EXPLORING if e.agent == agent]
        assert ways == [way for way in BEHAVIOURS if way[0] == "mean" or agent.learners > 1]
    assert len({exploring.part for exploring in EXPLORING}) == len(EXPLORING)
