"""The description of the package on PyPI: the README without links that work only in a clone."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

NOTE = "*The files and `make` targets that this page names are those of the source distribution.*"


class Description(MetadataHookInterface):
    """Sets `readme`; pyproject.toml calls it when a wheel or an sdist is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_files(readme)}


def without_files(text: str) -> str:
    """Return Markdown without its pictures, and with the words of links to files instead of the links."""
    text = re.sub(r"!\[[^]]*\]\([^)]*\)\n*", "", text)
    text = re.sub(r"\[([^]]+)\]\((?!https?:|#)[^)]*\)", r"\1", text)
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{NOTE}\n{rest}"
