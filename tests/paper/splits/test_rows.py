from ebql.paper.splits.curves import best_splits, split_curves
from ebql.paper.splits.rows import figure_1_table, figure_2_table


def test_figure_1_has_a_row_for_each_simulated_split():
    curves = split_curves(lambda _: None, gaps=(0.1, 0.5), points=5, replications=100)
    table = figure_1_table(curves)
    assert table.columns == ("delta", "n_index", "mse_exact", "mse_simulated", "interval")
    assert [row[1] for row in table.rows] == [1, 26, 50, 74, 99] * 2
    assert table.rows[1][2] == curves[0].mse[25]


def test_figure_2_has_a_row_for_each_gap_and_number_of_arms():
    table = figure_2_table(best_splits(lambda _: None, points=4))
    assert table.columns == ("arms", "normalized_gap", "n_index", "ensemble_size")
    assert [row[0] for row in table.rows] == [2] * 4 + [4] * 4 + [6] * 4
