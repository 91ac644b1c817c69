from matplotlib.figure import Figure

from ebql.paper.ledger import Claim, exactly
from ebql.paper.table import Table
from ebql.report.paper.section import FigureFolder, Section


def test_a_section_escapes_its_text_and_lists_its_claims():
    claim = Claim("name", "lemma 1", "a < b", (exactly("q", 1.0),))
    html = Section("T & U", "x < y", "<p>content</p>", (claim,)).html()
    assert "<h2>T &amp; U</h2>" in html
    assert "x &lt; y" in html
    assert html.index("<p>content</p>") < html.index("What we found") < html.index("a &lt; b")
    assert "What we found" not in Section("T", "x", "").html()


def test_the_folder_writes_tables_and_pictures_and_reports_pictures(tmp_path):
    heard = []
    folder = FigureFolder(tmp_path, heard.append)
    folder.write_table("t", Table(("a", "b"), ((1, 2),)))
    html = folder.write_picture("p", Figure(figsize=(1, 1)), "a picture")
    assert (tmp_path / "t.csv").read_text().split() == ["a,b", "1,2"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert 'alt="a picture"' in html
    assert heard == ["p.png"]
