from ebql.environments import PAPER_MEANS
from ebql.report.paper.meta_chain import figure_4, figure_4_section
from ebql.report.paper.section import FigureFolder


def test_figure_4_names_the_states_and_every_mean():
    (axes,) = figure_4().axes
    texts = [text.get_text() for text in axes.texts]
    assert {"$A^i$", "$B^i$", "$C^i$", "$D^i$"} <= set(texts)
    assert all(any(f"{mean:+g}" in text for text in texts) for mean in PAPER_MEANS)


def test_its_section_writes_one_picture_and_no_table(tmp_path):
    section = figure_4_section(FigureFolder(tmp_path, lambda _: None))
    assert [path.name for path in tmp_path.iterdir()] == ["fig4.png"]
    assert section.content.count("<img") == 1
