"""Figures 1 and 2, drawn, and their sections of the report page."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from ebql.paper.splits.claims import estimator_claims, figure_1_claims, figure_2_claims
from ebql.paper.splits.curves import SAMPLES, BestSplits, SplitCurve, best_splits, split_curves
from ebql.paper.splits.rows import figure_1_table, figure_2_table
from ebql.report.curves import tidy
from ebql.report.paper.section import FigureFolder, Section


def estimator_section() -> Section:
    """Judge the paper's theory of the estimators."""
    return Section(
        "The estimators",
        "Take N samples of each of m arms. One part of the samples selects the arm, the rest estimates its "
        "mean. The estimate is biased downwards, and for two arms with equal standard deviations an even "
        "split is never the best one.",
        "",
        estimator_claims(),
    )


def figure_1_section(folder: FigureFolder) -> Section:
    """Compute, write and judge figure 1."""
    curves = split_curves(folder.progress)
    folder.write_table("fig1", figure_1_table(curves))
    return Section(
        "Figure 1: error against the split",
        "For two Gaussian arms and any gap, the mean squared error is lowest below an even split. As the gap "
        "grows, the best share of samples that select rises from 0 to 0.4 and falls again.",
        folder.write_picture("fig1", figure_1(curves), "Mean squared error against the split ratio"),
        figure_1_claims(curves),
    )


def figure_2_section(folder: FigureFolder) -> Section:
    """Compute, write and judge figure 2."""
    results = best_splits(folder.progress)
    folder.write_table("fig2", figure_2_table(results))
    return Section(
        "Figure 2: the best split",
        "With 2, 4 or 6 arms the best split selects with fewer than half of the samples over a large range "
        "of gaps. So an ensemble of more than two members has a lower error than the double estimator.",
        folder.write_picture("fig2", figure_2(results), "Best split ratio against the normalised gap"),
        figure_2_claims(results),
    )


def figure_1(curves: Sequence[SplitCurve]) -> Figure:
    """Draw the MSE against the split ratio for several gaps: exact, simulated and the minimum."""
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["viridis"](np.linspace(0, 0.92, len(curves)))
    for curve, colour in zip(curves, colours, strict=True):
        axes.plot(curve.n_index / SAMPLES, curve.mse, color=colour, label=f"Δ = {curve.gap:g}")
        axes.errorbar(
            curve.simulated_n_index / SAMPLES,
            curve.simulated_mse,
            curve.simulated_half_width,
            fmt=".",
            color=colour,
            markersize=4,
            linewidth=1,
            alpha=0.7,
        )
        best = curve.best
        axes.plot(best / SAMPLES, curve.mse[best - 1], "*", color=colour, markersize=15, mec="black", mew=0.6)
    axes.axvline(0.5, color="grey", linestyle=":", linewidth=1)
    axes.text(
        0.505, 0.97, "even split (double)", transform=axes.get_xaxis_transform(), va="top", color="grey"
    )
    axes.set(yscale="log", xlabel="share of samples that select, N₁ / N", ylabel="mean squared error")
    axes.set_title("Lines exact, dots simulated with 95% intervals, stars the best split", fontsize=10)
    axes.legend(ncols=2, fontsize=8)
    tidy(axes)
    return figure


def figure_2(results: Sequence[BestSplits]) -> Figure:
    """Draw the best split against the normalised gap for each number of arms."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for result, colour in zip(results, ("#2e6fba", "#e07b39", "#3a7d44"), strict=False):
        axes.step(
            result.normalized_gap,
            result.n_index / SAMPLES,
            where="mid",
            color=colour,
            label=f"{result.arms} arms",
        )
    axes.axhline(0.5, color="grey", linestyle=":", linewidth=1)
    axes.text(0.012, 0.505, "even split (double)", color="grey", va="bottom")
    axes.set(xscale="log", ylim=(0, 0.56))
    axes.set(xlabel="normalised gap Δ / (σ √m)", ylabel="best share of selecting samples, N₁* / N")
    axes.legend(loc="upper right")
    tidy(axes)
    return figure
