"""What the documentation site generates from the code when it is built, so that it cannot go stale."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from manual import api, claims, commands, links, metrics, options, pictures, words

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent.parent
GENERATED = "generated"
"""The folder below docs/ that generated pages are written to."""


def setup(app: "Sphinx") -> dict[str, Any]:
    """Connect the generators to the events of Sphinx."""
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _lead_to_pages)
    app.connect("autodoc-process-docstring", api.as_plain_text, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", api.as_restructured_text)
    app.connect("autodoc-process-signature", api.readable_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write_pages(app: "Sphinx") -> None:
    folder = Path(app.srcdir) / GENERATED
    pages = {
        "commands.md": commands.page(),
        "options.md": options.page(),
        "metrics.md": metrics.page(),
        "words.inc": words.fragment(),
        "claims.md": claims.page(ROOT / "results/paper/ledger.json"),
        **{f"api-{name}.md": text for name, text in api.pages().items()},
        **{f"{name}.md": links.document(ROOT, file, folder) for name, file in links.DOCUMENTS.items()},
    }
    folder.mkdir(exist_ok=True)
    pictures.write(ROOT / "results", folder)
    for name, text in pages.items():
        path = folder / name
        if (
            not path.exists() or path.read_text(encoding="utf-8") != text
        ):  # unchanged pages are not read again
            path.write_text(text, encoding="utf-8")


def _lead_to_pages(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Lead links of a page that leave docs/ to pages of the site."""
    place = (Path(app.srcdir) / docname).parent
    if place.name != GENERATED:
        source[0] = links.in_site(source[0], place, place, ROOT)
