from ebql.paper.family.exploration import (
    BEHAVIOURS,
    COUPLED,
    UNCOUPLED,
    exploration_table,
    run_exploration,
)


def test_coupled_members_differ_less_than_uncoupled_members():
    heard = []
    results = run_exploration(heard.append, seeds=20, episodes=300)
    assert len(heard) == len(results) == 2 * len(BEHAVIOURS)
    spreads = {(e.agent.label, e.acting_rule, e.epsilon): e.spread for e in results}
    for behaviour in BEHAVIOURS:
        assert spreads[COUPLED.label, *behaviour] < spreads[UNCOUPLED.label, *behaviour]
    assert len(exploration_table(results).rows) == len(results)
