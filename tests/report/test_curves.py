import numpy as np

from ebql.analysis.runs import grouped, read_runs
from ebql.report.curves import HEADER, colours, curve_table, learning_curves
from ebql.report.images import png


def some_groups(write_run):
    paths = [
        write_run("d0", [1, 2, 3]),
        write_run("d1", [2, 3], seed=1),
        write_run("e0", [5], agent="ebql", ensemble_size=5),
        write_run("x0", [5], environment="X-v0", biases=[None]),
    ]
    return grouped(read_runs(paths))


def test_a_row_for_each_environment_and_a_panel_for_each_metric(write_run):
    figure = learning_curves(some_groups(write_run))
    panels = figure.axes
    assert len(panels) == 4
    assert panels[0].get_title("left") == "W-v0, 1–2 seeds"
    assert panels[2].get_title("left") == "X-v0, 1 seed"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["DQN", "EBQL K=5"]
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
    assert first["low"] < 0 < 3 < first["high"]
    assert rows[2]["seeds"] == 1
    assert rows[2]["low"] is rows[2]["high"] is None
    assert not [row for row in rows if row["environment"] == "X-v0" and row["metric"] == "bias/mean"]


def test_every_label_has_its_own_colour():
    labels = ["DQN", "DoubleDQN", "EBQL K=10", "EBQL K=5", "EBQL K=5, lr=1", "mine"]
    assert len(set(colours(labels).values())) == len(labels)
