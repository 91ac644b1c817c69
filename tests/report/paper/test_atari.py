import numpy as np
import pytest

from ebql.paper.atari.ends import End, paper_ends
from ebql.paper.atari.runs import NormalizedCurve
from ebql.report.images import png
from ebql.report.paper.atari import figure_6


def curve(agent, games, values=(0.1, 0.2, 0.9, 0.4, 0.4, 0.6)):
    steps = np.arange(1, len(values) + 1) * 1_000_000
    return NormalizedCurve(agent, games, 2, steps, np.array(values), np.array(values) / 2)


def drawn(*curves):
    return figure_6(curves, paper_ends(curves))


def lines_of_others(axes):
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    return {line.get_label().split(",")[0]: line.get_ydata()[0] for line in dashed}


def test_curves_are_smoothed_and_the_papers_ends_are_of_the_same_games():
    figure = drawn(curve("DQN", ("Pong",)), curve("EBQL K=7", ("Pong",)))
    mean, median = figure.axes[:2]
    np.testing.assert_allclose(mean.lines[0].get_ydata(), [0.1, 0.15, 0.4, 0.4, 0.4, 0.5])
    np.testing.assert_allclose(median.lines[0].get_ydata(), [0.05, 0.075, 0.2, 0.2, 0.2, 0.25])
    wanted = {"DQN": 38.1 / 30, "DoubleDQN": 40.6 / 30, "EBQL K=5": 41.7 / 30}
    assert lines_of_others(mean) == pytest.approx(wanted)
    assert mean.get_xlim() == (0, 6_000_000)
    assert "Pong" in figure.get_suptitle()
    assert "moving average" in figure.get_suptitle()
    assert png(figure).startswith(b"\x89PNG")


def test_a_curve_of_fewer_than_five_points_is_not_smoothed():
    figure = drawn(curve("DQN", ("Pong",), values=(0.1, 0.9)))
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), [0.1, 0.9])
    assert "moving average" not in figure.get_suptitle()


def test_frames_are_four_times_the_steps():
    figure = drawn(curve("DQN", ("Pong",)))
    png(figure)  # the second axis gets its limits when it is drawn
    (frames,) = figure.axes[0].child_axes
    assert frames.get_xlim() == (0, 24_000_000)


def test_without_runs_the_papers_table_stands_alone():
    figure = drawn()
    mean, median = figure.axes[:2]
    assert lines_of_others(mean)["EBQL K=5"] == pytest.approx(34.24, abs=0.005)
    assert lines_of_others(median)["EBQL K=5"] == pytest.approx(2.742, abs=0.0005)
    assert mean.get_xlim() == (0, 50_000_000)
    assert "No runs yet" in figure.get_suptitle()


def test_agents_without_a_common_game_are_said_to_differ():
    figure = drawn(curve("DQN", ("Pong",)), curve("EBQL K=5", ("Breakout",)))
    assert "own games" in figure.get_suptitle()
    assert lines_of_others(figure.axes[0])["EBQL K=5"] == pytest.approx((406.3 - 1.7) / 30.1)


def test_published_ends_are_drawn_with_their_length():
    end = End("DrQ", "somewhere", ("Pong",), None, 100_000, 0.25, 0.125)
    figure = figure_6([curve("DQN", ("Pong",))], [end])
    assert [lines_of_others(axes) for axes in figure.axes[:2]] == [{"DrQ": 0.25}, {"DrQ": 0.125}]
    assert figure.axes[0].lines[1].get_label() == "DrQ, published at 100k steps"
