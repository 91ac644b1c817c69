import numpy as np
import pytest

from ebql.paper.atari.runs import NormalizedCurve
from ebql.report.images import png
from ebql.report.paper.atari import figure_6


def curve(agent, games, values=(0.1, 0.2, 0.9)):
    steps = np.arange(1, len(values) + 1) * 1_000_000
    return NormalizedCurve(agent, games, 2, steps, np.array(values), np.array(values) / 2)


def paper_lines(axes):
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    return {line.get_label().split(",")[0]: line.get_ydata()[0] for line in dashed}


def test_curves_are_smoothed_and_the_papers_ends_are_of_the_same_games():
    figure = figure_6([curve("DQN", ("Pong",)), curve("EBQL K=7", ("Pong",))])
    mean, median = figure.axes[:2]
    np.testing.assert_allclose(mean.lines[0].get_ydata(), [0.1, 0.15, 0.4])
    np.testing.assert_allclose(median.lines[0].get_ydata(), [0.05, 0.075, 0.2])
    wanted = {"DQN": 38.1 / 30, "DoubleDQN": 40.6 / 30, "EBQL K=5": 41.7 / 30}
    assert paper_lines(mean) == pytest.approx(wanted)
    assert mean.get_xlim() == (0, 3_000_000)
    assert "Pong" in figure.get_suptitle()
    assert png(figure).startswith(b"\x89PNG")


def test_frames_are_four_times_the_steps():
    figure = figure_6([curve("DQN", ("Pong",))])
    png(figure)  # the second axis gets its limits when it is drawn
    (frames,) = figure.axes[0].child_axes
    assert frames.get_xlim() == (0, 12_000_000)


def test_without_runs_the_papers_table_stands_alone():
    figure = figure_6([])
    mean, median = figure.axes[:2]
    assert paper_lines(mean)["EBQL K=5"] == pytest.approx(34.24, abs=0.005)
    assert paper_lines(median)["EBQL K=5"] == pytest.approx(2.742, abs=0.0005)
    assert mean.get_xlim() == (0, 50_000_000)
    assert "No runs yet" in figure.get_suptitle()


def test_agents_without_a_common_game_are_said_to_differ():
    figure = figure_6([curve("DQN", ("Pong",)), curve("EBQL K=5", ("Breakout",))])
    assert "own games" in figure.get_suptitle()
    assert paper_lines(figure.axes[0])["EBQL K=5"] == pytest.approx((406.3 - 1.7) / 30.1)
