"""`ebql report`: a study's page."""

from pathlib import Path

import tyro
from rich.markup import escape

from ebql.cli.importing import Imports, import_named
from ebql.terminal.console import Console


def report(
    study: tyro.conf.Positional[Path],
    out: Path | None = None,
    accept_changes: bool = False,
    imports: Imports = (),
) -> None:
    """Compare the agents of a study: who won, by how much, with what certainty, and how biased they were.

    Writes report.html, a single self-contained page, and its pictures (PNG) and tables (CSV) beside it.
    Unfinished runs are included up to their latest step.

    Args:
        study: The folder of a study, or any folder that contains runs.
        out: The folder to write to; by default STUDY/report.
        accept_changes: Continue even though files of a run were changed by hand; the page marks them.
        imports: Import this module first, which may register environments of your own; can be repeated.
    """
    import_named(imports)
    from ebql.analysis.runs import change_notes
    from ebql.analysis.scores import read_scores
    from ebql.report.study.report import StudyReport
    from ebql.report.study.words import headline

    found = read_scores(study, accept_changes=accept_changes)
    written = StudyReport(found, f"Study {study.resolve().name}", study / "report" if out is None else out)
    page = written.write()
    console = Console()
    console.print(headline(found, written.findings).sentence, highlight=False, markup=False, soft_wrap=True)
    for note in change_notes(found.runs):
        Console(stderr=True).print(f"note: {note}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"Report: [bold]{escape(str(page))}[/]", highlight=False, soft_wrap=True)
