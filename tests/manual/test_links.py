"""Links lead to pages of the site, and broken ones are noticed."""

from pathlib import Path

from manual.check import problems
from manual.links import in_site

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def test_links_that_leave_the_docs_lead_to_pages():
    text = "[a](../SECURITY.md) [b](../results/minatar) [c](../results/README.md#masks) [d](bias.md)"
    assert in_site(text, DOCS, DOCS, ROOT) == (
        "[a](generated/security.md) [b](generated/results.md) [c](generated/results.md#masks) [d](bias.md)"
    )


def test_a_document_is_moved_with_its_links():
    text = "[a](docs/bias.md) [b](https://example.org/docs) [c](results/paper/ledger.json)"
    assert in_site(text, ROOT, DOCS / "generated", ROOT) == (
        "[a](../bias.md) [b](https://example.org/docs) [c](../../results/paper/ledger.json)"
    )


def test_code_is_left_alone():
    text = "`[a](../SECURITY.md)`\n\n```python\n[a](../SECURITY.md)\n```\n"
    assert in_site(text, DOCS, DOCS, ROOT) == text


def test_broken_links_and_fetches_are_found(tmp_path):
    (tmp_path / "b.html").write_text('<p id="here">', encoding="utf-8")
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">1</a><a href="b.html#gone">2</a><a href="gone.html">3</a><a href="#top">4</a>'
        '<a href="https://example.org">5</a><script src="https://example.org/x.js"></script>',
        encoding="utf-8",
    )
    assert list(problems(tmp_path)) == [
        "a.html fetches https://example.org/x.js",
        "a.html links to b.html#gone, which has no such anchor",
        "a.html links to gone.html, which is not there",
    ]
