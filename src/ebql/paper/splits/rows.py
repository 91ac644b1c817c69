"""The data of figures 1 and 2 as tables."""

from collections.abc import Iterable

from ebql.paper.splits.curves import BestSplits, SplitCurve
from ebql.paper.table import Table


def figure_1_table(curves: Iterable[SplitCurve]) -> Table:
    """Return one row for each simulated split of each gap."""
    return Table(
        ("delta", "n_index", "mse_exact", "mse_simulated", "interval"),
        tuple(
            (curve.gap, int(n), float(curve.mse[n - 1]), float(simulated), float(half))
            for curve in curves
            for n, simulated, half in zip(
                curve.simulated_n_index, curve.simulated_mse, curve.simulated_half_width, strict=True
            )
        ),
    )


def figure_2_table(results: Iterable[BestSplits]) -> Table:
    """Return one row for each gap of each number of arms."""
    return Table(
        ("arms", "normalized_gap", "n_index", "ensemble_size"),
        tuple(
            (result.arms, float(gap), int(n_index), int(size))
            for result in results
            for gap, n_index, size in zip(
                result.normalized_gap, result.n_index, result.ensemble_size, strict=True
            )
        ),
    )
