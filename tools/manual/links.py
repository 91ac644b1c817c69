"""Links that work both in the repository and on the site.

A page in docs/ may link to a document outside of it, or to a folder of results. On the site, the document is
a page of its own, a folder is the page that describes it, and any other file is a download.
"""

import os
import re
from pathlib import Path

DOCUMENTS = {
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "conduct": "CODE_OF_CONDUCT.md",
    "results": "results/README.md",
    "results-atari": "results/atari/README.md",
    "results-benchmarks": "results/benchmarks/README.md",
    "results-classic": "results/classic/README.md",
    "results-masks": "results/masks/README.md",
    "reliability-counts": "results/reliability/README.md",
    "security": "SECURITY.md",
}
"""The pages of docs/generated/ that are copies of documents elsewhere in the repository."""

_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"(^```.*?^```|``.*?``|`[^`\n]*`)", flags=re.M | re.S)


def document(root: Path, file: str, folder: Path) -> str:
    """Return the text of a document, with links as seen from `folder`."""
    return in_site((root / file).read_text(encoding="utf-8"), (root / file).parent, folder, root)


def in_site(text: str, place: Path, folder: Path, root: Path) -> str:
    """Return a page that was written in the folder `place` with the links that it needs in `folder`."""

    def led(found: re.Match[str]) -> str:
        before, address, anchor, after = found.groups(default="")
        return f"{before}{_address(address, place, folder, root)}{anchor}{after}"

    parts = _CODE.split(text)
    return "".join(part if i % 2 else _LINK.sub(led, part) for i, part in enumerate(parts))


def _address(address: str, place: Path, folder: Path, root: Path) -> str:
    target = (place / address).resolve()
    generated = root / "docs/generated"
    for name, file in DOCUMENTS.items():
        if target == root / file:
            return _relative(generated / f"{name}.md", folder)
    if target.is_dir() and target.is_relative_to(root):
        page = "results" if target.is_relative_to(root / "results") else "contributing"
        return _relative(generated / f"{page}.md", folder)
    return _relative(target, folder) if target.exists() else address


def _relative(target: Path, folder: Path) -> str:
    return Path(os.path.relpath(target, folder)).as_posix()
