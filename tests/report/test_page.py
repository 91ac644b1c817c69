from html.parser import HTMLParser

from ebql.paper.ledger import Claim, exactly
from ebql.report.page import findings, page, picture, tabs


class _Checker(HTMLParser):
    """Counts that every opened tag is closed, and collects what is loaded."""

    void = frozenset({"meta", "img", "br", "input"})

    def __init__(self):
        super().__init__()
        self.open, self.loaded = [], []

    def handle_starttag(self, tag, attrs):
        self.loaded += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_page_is_well_formed_and_self_contained():
    claim = Claim("n", "s <1>", "a < b & c", (exactly("q", 1.0),), note="why")
    text = page("a & b", [picture(b"png", 'a "picture"'), tabs("t", {"x": "1", "y": "2"}), findings([claim])])
    checker = _Checker()
    checker.feed(text)
    assert not checker.open
    assert all(source.startswith("data:") for source in checker.loaded)
    assert "a &lt; b &amp; c" in text
    assert "<title>a &amp; b</title>" in text
