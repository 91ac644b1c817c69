import numpy as np
import pytest

from ebql.paper.chains.curves import META_CHAIN, REGIMES
from ebql.paper.family.adaptive import (
    ADAPTIVE,
    FIXED,
    GAP,
    SPLIT_WORLDS,
    graded_meta_chain,
    run_splits,
    splits_table,
)

FULL_EXPLORATION = REGIMES[2]


def test_the_graded_chain_keeps_what_risk_is_worth():
    plain, graded = SPLIT_WORLDS[META_CHAIN], graded_meta_chain()
    for before, after in zip(plain.decisions, graded.decisions, strict=True):
        exact = graded.optimal_values(1.0)[after.state]
        assert exact[after.risky_action] == pytest.approx(before.mean)
        behind = graded.expected_rewards[after.state + 1, : graded.action_counts[after.state + 1]]
        np.testing.assert_allclose(behind, before.mean - GAP * (np.arange(len(behind)) > 0))


def test_every_split_is_set_against_the_adaptive_one():
    heard = []
    cells = run_splits(heard.append, regimes=(FULL_EXPLORATION,), seeds=4, episodes=60)
    assert len(cells) == len(heard) == len(SPLIT_WORLDS) * (1 + len(FIXED))
    for cell in cells:
        itself = next(c for c in cells if c.world == cell.world and c.agent == ADAPTIVE)
        assert cell.rate_margin == pytest.approx(itself.rate - cell.rate)
        assert cell.error_margin == pytest.approx(cell.squared_error - itself.squared_error)
    fixed = [cell.mean_split for cell in cells if cell.agent != ADAPTIVE]
    assert fixed == [1, 2, 3, 4, 5] * len(SPLIT_WORLDS)
    assert len(splits_table(cells).rows) == len(cells)
