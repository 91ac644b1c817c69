"""The section of the report page on the deep agents: a short study on MinAtar Breakout."""

from html import escape
from pathlib import Path

from ebql.analysis.scores import read_scores
from ebql.paper import short_study
from ebql.report.curves import learning_curves
from ebql.report.paper.section import FigureFolder, Section
from ebql.report.study.report import StudyReport
from ebql.report.study.words import caveats, further_findings, headline
from ebql.studies.plan import plan


def check_deep_study(steps: int, folder: Path) -> None:
    """Raise an error if the study cannot be run in the reproduction's folder."""
    plan(short_study.short_study(steps), _study_folder(folder))


def deep_section(steps: int, folder: FigureFolder) -> Section:
    """Run what is missing of the short study, and report it."""
    study_folder = _study_folder(folder.path)
    short_study.perform(short_study.short_study(steps), study_folder, lambda: folder.progress("deep study"))
    study = read_scores(study_folder)
    report = StudyReport(study, "DQN, double DQN and EBQL on MinAtar Breakout", study_folder / "report")
    report.write()
    sentences = [
        headline(study, report.findings).sentence,
        *further_findings(study, report.findings),
        *caveats(study, report.findings),
    ]
    return Section(
        "The deep agents: score and bias on MinAtar Breakout",
        "With networks, EBQL scores higher than DQN and double DQN on eleven Atari games. The paper does not "
        "measure the bias of their values. We do, on a game that can be learnt on a CPU.",
        folder.write_picture(
            "deep", learning_curves(study.groups), "Return and measured bias over agent steps"
        )
        + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
        + f'<p><a href="{study_folder.name}/report/report.html">The full report of this short study</a>. '
        "Use ebql sweep for longer studies with more seeds and games.</p>",
    )


def _study_folder(folder: Path) -> Path:
    return folder / "deep-study"
