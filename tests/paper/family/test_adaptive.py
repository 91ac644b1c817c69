import numpy as np
import pytest

from ebql.paper.chains.curves import META_CHAIN, REGIMES
from ebql.paper.family.adaptive import ADAPTIVE, FIXED, RIVALS, split_cells, split_parts, splits_table
from ebql.paper.family.maps import CHAINS
from ebql.paper.family.outcomes import Outcomes

FULL_EXPLORATION = REGIMES[2]


def test_every_other_agent_is_set_against_the_adaptive_split():
    parts = split_parts((FULL_EXPLORATION,))
    cells = split_cells(Outcomes(None, lambda _: None, seeds=4, episodes=60).of(parts))
    assert [(c.world, c.regime, c.agent) for c in cells] == parts
    assert len(cells) == len(CHAINS) * (1 + len(RIVALS))
    for cell in cells:
        itself = next(c for c in cells if c.world == cell.world and c.agent == ADAPTIVE)
        assert cell.rate_margin == pytest.approx(itself.rate - cell.rate)
        assert cell.error_margin == pytest.approx(cell.squared_error - itself.squared_error)
    fixed = [cell.mean_split for cell in cells if cell.agent in FIXED]
    assert fixed == [1, 2, 3, 4, 5] * len(CHAINS)
    assert all(1 <= cell.mean_split <= 5 for cell in cells if cell.agent == ADAPTIVE)
    assert all(np.isnan(c.mean_split) for c in cells if "EBQL" not in c.agent.label)
    assert cells[0].world == META_CHAIN
    assert len(splits_table(cells).rows) == len(cells)
