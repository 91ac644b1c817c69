import pytest

from ebql.paper.atari.ends import curves_and_ends
from ebql.paper.atari.rows import TABLE_1_COLUMNS, figure_6_table, table_1_table
from ebql.paper.atari.runs import atari_groups, cell

pytestmark = pytest.mark.usefixtures("paper_preset")


def test_the_table_has_every_cell_of_the_paper_and_ours(some_groups):
    cells = [cell(group) for group in some_groups]
    rows = [dict(zip(TABLE_1_COLUMNS, row, strict=True)) for row in table_1_table(cells).rows]
    assert len(rows) == 55 + len(cells)
    paper = next(r for r in rows if (r["game"], r["agent"]) == ("Pong", "EBQL K=5"))
    assert (paper["score"], paper["most_frames"], paper["human_normalized"]) == (
        21.0,
        200_000_000,
        pytest.approx(1.39),
    )
    own = next(r for r in rows if r["source"] == "ours" and (r["game"], r["agent"]) == ("Pong", "DQN"))
    assert (own["seeds"], own["least_steps"], own["most_steps"], own["most_frames"]) == (2, 20, 30, 120)
    assert own["score"] == pytest.approx(9.3)
    assert own["low"] == own["high"] == ""


def test_the_table_has_intervals_from_five_seeds_on(write_run):
    paths = [write_run(f"{seed}", [9.3], environment="ALE/Pong-v5", seed=seed) for seed in range(5)]
    (row,) = (r for r in table_1_table([cell(g) for g in atari_groups(paths)]).rows if r[2] == "ours")
    assert row[3:6] == pytest.approx((9.3, 9.3, 9.3))


def test_the_figures_table_has_ours_and_where_the_paper_ends_on_the_same_games(some_groups):
    table = figure_6_table(*curves_and_ends(some_groups))
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [r["steps"] for r in rows if r["source"] == "ours"] == [10, 20, 20]
    (same,) = [r for r in rows if (r["source"], r["agent"], r["games"]) == ("paper", "DQN", "Breakout Pong")]
    assert same["mean"] == pytest.approx(((283.5 - 1.7) / 30.1 + 38.1 / 30) / 2)
    assert len([r for r in rows if r["source"] == "paper"]) == 6
