"""Check a built site: every local link leads somewhere, and no page needs the network.

python -m manual.check docs/_build/html
"""

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SOURCES = {"script": "src", "img": "src", "link": "href", "source": "src", "video": "src", "iframe": "src"}
"""What a browser fetches by itself; `link` elements that only name a page are not fetched."""


class Page(HTMLParser):
    """The addresses and the anchors of one HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and the anchor of an element."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag in _SOURCES and _SOURCES[tag] in values:
            self.fetched.add(values[_SOURCES[tag]])


def problems(site: Path) -> Iterator[str]:
    """Yield a line for each broken link, and for each thing that a page fetches from the network."""

    @cache
    def read(path: Path) -> Page:
        return Page(path.read_text(encoding="utf-8"))

    for path in sorted(site.rglob("*.html")):
        page, name = read(path), path.relative_to(site).as_posix()
        for address in sorted(page.fetched):
            if urlsplit(address).netloc:
                yield f"{name} fetches {address}"
        for address in sorted(page.links | page.fetched):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{name} links to {address}, which is not there"
            elif target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors:
                yield f"{name} links to {address}, which has no such anchor"


def main() -> int:
    """Print all problems; return 1 if there is one."""
    site = Path(sys.argv[1])
    found = list(problems(site))
    for line in found:
        print(line)
    pages = len(list(site.rglob("*.html")))
    print(f"{pages} pages, {len(found)} problems")
    return int(bool(found) or not pages)


if __name__ == "__main__":
    sys.exit(main())
