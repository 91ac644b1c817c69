"""A section of a reproduction's report page, and the folder for its tables and pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from ebql.paper.ledger import Claim
from ebql.paper.table import Table
from ebql.report import page
from ebql.report.images import png
from ebql.runs import write_bytes, write_csv


@dataclass(frozen=True)
class Section:
    """One section of the report page: what the paper says, a picture, and the claims with their verdicts."""

    title: str
    paper_says: str
    content: str
    """HTML."""
    claims: Sequence[Claim] = ()

    def html(self) -> str:
        """Return the section as HTML."""
        results = f"<h3>What we found</h3>{page.findings(self.claims)}" if self.claims else ""
        paper = f'<p class="says"><b>The paper:</b> {escape(self.paper_says)}</p>'
        return f"<h2>{escape(self.title)}</h2>{paper}{self.content}{results}"


@dataclass(frozen=True)
class FigureFolder:
    """The folder to write tables and pictures to; `progress` is called with the name of each picture."""

    path: Path
    progress: Callable[[str], None]

    def write_table(self, name: str, table: Table) -> None:
        """Write a table as a CSV file."""
        write_csv(self.path / f"{name}.csv", table.columns, table.rows)

    def write_picture(self, name: str, figure: Figure, description: str) -> str:
        """Write a figure as a PNG file; return it as HTML, with the description for screen readers."""
        image = png(figure)
        write_bytes(self.path / f"{name}.png", image)
        self.progress(f"{name}.png")
        return page.picture(image, description)
