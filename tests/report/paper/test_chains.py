import pytest

from ebql.paper.chains.curves import AGENTS, FIGURE_3_WORLDS, REGIMES, Margin, margins, run_learning_curves
from ebql.report.paper.chains import (
    BIAS_PANELS,
    figure_3,
    figure_3_section,
    figure_5,
    regime_map,
    regime_map_in_words,
)
from ebql.report.paper.section import FigureFolder
from ebql.tabular import Metric


@pytest.fixture(scope="module")
def curves():
    return run_learning_curves(lambda _: None, regimes=REGIMES[:2], seeds=5, episodes=30)


def test_figures_3_and_5_draw_every_agent_in_every_panel(curves):
    for figure, panels in (
        (figure_3(curves, REGIMES[0]), FIGURE_3_WORLDS),
        (figure_5(curves, REGIMES[0]), BIAS_PANELS),
    ):
        assert len(figure.axes) == len(panels)
        for axes in figure.axes:
            drawn = [line for line in axes.lines if not line.get_label().startswith("_")]
            assert [line.get_label() for line in drawn] == [agent.label for agent in AGENTS]
        assert figure.get_suptitle() == REGIMES[0].name


def test_the_regime_map_writes_each_margin_into_its_cell(curves):
    cells = margins(curves)
    written = [text.get_text() for text in regime_map(cells).axes[0].texts]
    assert written == [f"{cell.margin:+.3f}" for cell in cells]


def test_a_section_has_a_picture_of_each_regime_and_the_middle_one_twice(curves, tmp_path):
    heard = []
    section = figure_3_section(curves, FigureFolder(tmp_path, heard.append))
    assert heard == [f"fig3-{regime.slug}.png" for regime in (REGIMES[1], REGIMES[0])]
    assert (tmp_path / "fig3.png").read_bytes() == (tmp_path / f"fig3-{REGIMES[1].slug}.png").read_bytes()
    assert section.content.count("<img") == 2
    assert (tmp_path / "fig3.csv").exists()


def test_theregime_map_in_words_counts_what_the_map_shows():
    cells = [
        Margin(REGIMES[0], AGENTS[2], Metric.GREEDY_CORRECT, 0.9, margin, 0.1, "QL")
        for margin in (0.3, 0.2, 0.05, -0.05, -0.4)
    ]
    words = regime_map_in_words(cells)
    assert "In 2 of 5 cells EBQL is ahead of both Q-learning and double Q-learning" in words
    assert "and in 1 it is behind one of them" in words
    assert "+0.300" in words
    assert "-0.400" in words
