from ebql.paper.chains.curves import META_CHAIN, QL, margins
from ebql.paper.chains.rows import bias_table, figure_3_table, figure_5_table, regime_table, summary_table
from ebql.tabular import Group, Metric


def test_tables_have_the_promised_columns(curves):
    columns = ("regime", "chain", "agent", "ensemble_size", "episode", "value", "interval")
    for table in (figure_3_table(curves), figure_5_table(curves)):
        assert table.columns == columns
        assert len(table.rows) == 2 * 3 * 7 * 16
        assert all(0 < row[4] <= 400 for row in table.rows)
    rates = [row[5] for row in figure_3_table(curves).rows]
    assert 0 <= min(rates) <= max(rates) <= 1
    assert len(summary_table(curves).rows) == 2 * 7 * 5 * (1 + 1 + 1 + 3)
    assert len(bias_table(curves).rows) == 3 * 3 * 2 * 7 * 16


def test_the_regime_map_has_a_row_for_each_regime_and_ensemble(curves):
    assert len(regime_table(margins(curves)).rows) == 2 * 5


def test_figure_5_shows_the_bias_of_the_optimal_action(curves):
    regime = curves.regimes[0]
    curve = curves.get(regime, META_CHAIN, QL)
    rows = figure_5_table(curves).rows
    for group in Group:
        values = [row[5] for row in rows if row[:3] == (regime.name, group.value, QL.label)]
        assert values == curve.over_seeds(Metric.BIAS_OPTIMAL, group).mean.tolist()
        if group is Group.ALL:
            for other in (Metric.BIAS_RISKY, Metric.BIAS_MAX):
                assert values != curve.over_seeds(other, group).mean.tolist()
