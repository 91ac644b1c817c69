import numpy as np
import pytest

from ebql.analysis.runs import grouped, read_runs
from ebql.report.curves import HEADER, curve_table, learning_curves, metric_curves
from ebql.report.images import png
from ebql.report.palette import colours
from ebql.runs.metric_names import EVALUATION_RETURN


def some_groups(write_run):
    paths = [
        write_run("d0", [1, 2, 3]),
        write_run("d1", [2, 3], seed=1),
        write_run("e0", [5], agent="ebql", ensemble_size=5),
        write_run("x0", [5], environment="X-v0", biases=[None]),
    ]
    return grouped(read_runs(paths))


def seeds_of(write_run, name, count, returns=(1, 2, 3), **more):
    """Write runs whose returns differ by their seed."""
    return [write_run(f"{name}{s}", [x + s for x in returns], seed=s, **more) for s in range(count)]


def thin_lines(axes):
    return [
        line.get_ydata().tolist()
        for line in axes.lines
        if line.get_linewidth() < 1
        and len(line.get_xdata())
        and line.get_linestyle() == "-"
        and line.get_color() != "black"
    ]


def bands(axes):
    """Return how many points each band that is seen has."""
    areas = (area for area in axes.collections for path in area.get_paths() if len(path.vertices))
    return [(len(area.get_paths()[0].vertices) - 3) // 2 for area in areas]


def test_a_row_for_each_environment_and_a_panel_for_each_metric(write_run):
    figure = learning_curves(some_groups(write_run))
    panels = figure.axes
    assert len(panels) == 4
    assert panels[0].get_title("left") == "W-v0, 1–2 seeds"
    assert panels[2].get_title("left") == "X-v0, 1 seed"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["DQN", "EBQL K=5", "one seed"]
    assert png(figure).startswith(b"\x89PNG")


def test_steps_of_atari_say_their_frames(write_run):
    paths = [write_run("d0", [1, 2]), write_run("a0", [1, 2], environment="ALE/Pong-v5")]
    labels = [axes.get_xlabel() for axes in learning_curves(grouped(read_runs(paths))).axes[::2]]
    assert sorted(labels) == ["agent steps", "agent steps (of 4 frames)"]


def test_where_seeds_are_missing_the_line_is_only_dotted_and_the_band_cut_at_the_frame(write_run):
    axes = learning_curves(some_groups(write_run)).axes[0]
    dotted, solid = axes.lines[:2]
    assert dotted.get_ydata().tolist() == [1.5, 2.5, 3.0]
    np.testing.assert_equal(solid.get_ydata(), [1.5, 2.5, np.nan])
    low, high = axes.get_ylim()
    assert 0 < low < 1
    assert 5 < high < 6


def test_few_seeds_are_a_thin_line_each_around_their_mean_without_a_band(write_run):
    groups = grouped(read_runs(seeds_of(write_run, "d", 4)))
    for figure in (learning_curves(groups), metric_curves(groups, EVALUATION_RETURN)):
        axes = figure.axes[0]
        assert bands(axes) == []
        assert thin_lines(axes) == [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6]]
        assert axes.lines[1].get_ydata().tolist() == [2.5, 3.5, 4.5]
        assert "one seed" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_five_seeds_have_a_band_and_no_lines_of_their_own(write_run):
    figure = learning_curves(grouped(read_runs(seeds_of(write_run, "d", 5))))
    assert bands(figure.axes[0]) == [3]
    assert thin_lines(figure.axes[0]) == []
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["DQN"]


def test_the_agent_with_the_fewest_seeds_decides_in_its_environment_alone(write_run):
    paths = seeds_of(write_run, "d", 5) + seeds_of(write_run, "e", 2, agent="double-dqn")
    paths += seeds_of(write_run, "x", 5, environment="X-v0")
    few, enough = metric_curves(grouped(read_runs(paths)), EVALUATION_RETURN).axes
    assert bands(few) == []
    assert len(thin_lines(few)) == 7
    low, high = few.get_ylim()
    assert low < 1 < 7 < high  # every seed is within the frame
    assert bands(enough) == [3]
    assert thin_lines(enough) == []


def test_the_band_ends_where_fewer_than_five_seeds_have_arrived(write_run):
    paths = [*seeds_of(write_run, "d", 4), write_run("late", [9, 9], seed=9)]
    axes = metric_curves(grouped(read_runs(paths)), EVALUATION_RETURN).axes[0]
    assert bands(axes) == [2]
    assert axes.lines[0].get_ydata().tolist() == [3.8, 4.6, 4.5]


def test_the_last_point_is_marked_even_if_it_is_the_only_one(write_run):
    paths = [write_run("d0", list(range(30))), write_run("e0", [5], agent="ebql", ensemble_size=5)]
    axes = learning_curves(grouped(read_runs(paths))).axes[0]
    long, single = axes.lines[1], axes.lines[3]
    assert long.get_markevery() == (2, 3)  # 2, 5, …, 29
    assert single.get_markevery() == (0, 1)


def test_the_table_holds_what_the_figure_shows(write_run):
    rows = [dict(zip(HEADER, row, strict=True)) for row in curve_table(some_groups(write_run))]
    first = rows[0]
    assert (first["agent"], first["metric"], first["step"], first["seeds"]) == (
        "DQN",
        "evaluation/return",
        10,
        2,
    )
    assert first["mean"] == 1.5
    assert {(row["low"], row["high"]) for row in rows} == {(None, None)}  # too few seeds
    assert rows[2]["seeds"] == 1
    assert not [row for row in rows if row["environment"] == "X-v0" and row["metric"] == "bias/mean"]


def test_the_table_has_intervals_from_five_seeds_on(write_run):
    (row, *_) = curve_table(grouped(read_runs(seeds_of(write_run, "d", 5))))
    found = dict(zip(HEADER, row, strict=True))
    half = 2.7764 * np.sqrt(2.5 / 5)  # t of 4 degrees of freedom
    assert (found["low"], found["mean"], found["high"]) == pytest.approx((3 - half, 3, 3 + half), rel=1e-4)


def test_every_label_has_its_own_colour():
    labels = ["DQN", "DoubleDQN", "EBQL K=10", "EBQL K=5", "EBQL K=5, lr=1", "mine"]
    assert len(set(colours(labels).values())) == len(labels)
