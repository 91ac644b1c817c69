import numpy as np

from ebql.paper.splits.curves import SAMPLES, best_splits, split_curves
from ebql.report.paper.splits import estimator_section, figure_1, figure_2


def test_figure_1_marks_the_best_split_of_each_gap():
    curves = split_curves(lambda _: None, gaps=(0.05, 0.5), points=3, replications=100)
    (axes,) = figure_1(curves).axes
    stars = [line for line in axes.lines if line.get_marker() == "*"]
    assert [line.get_xdata()[0] for line in stars] == [curve.best / SAMPLES for curve in curves]


def test_figure_2_draws_the_best_share_for_each_number_of_arms():
    results = best_splits(lambda _: None, points=4)
    (axes,) = figure_2(results).axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    for result in results:
        np.testing.assert_array_equal(drawn[f"{result.arms} arms"], result.n_index / SAMPLES)


def test_the_theory_is_a_section_without_a_picture():
    section = estimator_section()
    assert section.claims
    assert "<img" not in section.html()
