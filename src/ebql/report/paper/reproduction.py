"""A reproduction from start to end: make the figures, then write the ledger and the report page."""

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ebql.errors import InputError, unknown_name
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.paper import short_study
from ebql.paper.chains.curves import AGENTS, REGIMES, WORLDS, LearningCurves, run_learning_curves
from ebql.paper.chains.rows import summary_table
from ebql.paper.ledger import Claim, Verdict
from ebql.paper.splits.curves import ARMS, GAPS, SAMPLES
from ebql.report import page
from ebql.report.paper.chains import figure_3_section, figure_5_section, regime_section
from ebql.report.paper.deep_study import check_deep_study, deep_section
from ebql.report.paper.meta_chain import figure_4_section
from ebql.report.paper.section import FigureFolder, Section
from ebql.report.paper.splits import estimator_section, figure_1_section, figure_2_section
from ebql.runs import output_folder, provenance, write_json, write_text

FIGURES = {
    "fig1": len(GAPS) + 1,
    "fig2": len(ARMS) + 1,
    "fig3": len(REGIMES),
    "fig4": 1,
    "fig5": len(REGIMES),
    "regimes": 1,
    "deep": short_study.PIECES + 1,
}
"""Every figure, with the number of times that it calls `progress`."""
NEED_LEARNING_CURVES = {"fig3", "fig5", "regimes"}


class Reproduction:
    """Makes the paper's figures in an output folder, with the ledger of claims and the report page."""

    def __init__(
        self, out: str | Path, *, seeds: int, episodes: int, deep_steps: int = short_study.STEPS
    ) -> None:
        """Check the settings and the output folder, before anything is run."""
        if seeds < FEWEST_SEEDS:
            raise InputError(f"An interval over seeds needs at least {FEWEST_SEEDS} seeds, not {seeds}.")
        if episodes < 1:
            raise InputError(f"episodes must be at least 1, not {episodes}.")
        if deep_steps < 1:
            raise InputError(f"deep-steps must be at least 1, not {deep_steps}.")
        self.out = output_folder(out)
        self.seeds, self.episodes, self.deep_steps = seeds, episodes, deep_steps

    def make(self, names: Sequence[str], progress: Callable[[str], None]) -> list[Claim]:
        """Make the named figures, then the ledger and the report page; return the claims.

        `progress` is called after each step, `count_steps` times in all.
        """
        folder = FigureFolder(self.out, progress)
        if "deep" in names:  # refuse what cannot be run before anything else is
            check_deep_study(self.deep_steps, self.out)
        sections = [estimator_section()]
        progress("theory")
        needs_curves = NEED_LEARNING_CURVES & set(names)
        curves = self._learning_curves(folder) if needs_curves else LearningCurves(())
        makers: dict[str, Callable[[], Section]] = {
            "fig1": lambda: figure_1_section(folder),
            "fig2": lambda: figure_2_section(folder),
            "fig3": lambda: figure_3_section(curves, folder),
            "fig4": lambda: figure_4_section(folder),
            "fig5": lambda: figure_5_section(curves, folder),
            "regimes": lambda: regime_section(curves, folder),
            "deep": lambda: deep_section(self.deep_steps, folder),
        }
        sections += [makers[name]() for name in names]
        claims = [claim for section in sections for claim in section.claims]
        write_json(self.out / "ledger.json", self._ledger(claims))
        write_text(self.out / "report.html", self._page(sections, claims))
        return claims

    def _learning_curves(self, folder: FigureFolder) -> LearningCurves:
        curves = run_learning_curves(folder.progress, seeds=self.seeds, episodes=self.episodes)
        folder.write_table("courses", summary_table(curves))
        return curves

    def _ledger(self, claims: Sequence[Claim]) -> dict[str, Any]:
        return {
            "made_by": provenance(),
            "seeds": self.seeds,
            "episodes": self.episodes,
            "samples": SAMPLES,
            "claims": [claim.as_json() for claim in claims],
        }

    def _page(self, sections: Sequence[Section], claims: Sequence[Claim]) -> str:
        counts = Counter(claim.verdict for claim in claims)
        made = provenance()
        lead = (
            f"We measured {len(claims)} claims of sections 4 to 6.1 of the paper: {counts[Verdict.HOLDS]} "
            f"hold, {counts[Verdict.FAILS]} fail, {counts[Verdict.MIXED]} are mixed, {counts[Verdict.OPEN]} "
            "are open. Each is listed with its evidence. A claim holds in a regime if the 95% interval over "
            "seeds is on the claimed side, fails there if the interval is on the other side, and is "
            "otherwise open. A claim fails as a whole if it fails in some regime and holds in none. "
            "Intervals are not adjusted for multiple comparisons. Correct-action rates are those of the "
            "greedy action unless stated otherwise."
        )
        versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
        footer = (
            f"{self.seeds} seeds, {self.episodes} episodes, {SAMPLES} samples. Made on {made['date']} by "
            f"“{made['command']}” with {versions}."
        )
        body = [
            "<h1>How to estimate the value of the best action without fooling yourself</h1>",
            '<p class="lead">Ensemble Bootstrapped Q-Learning (Peer, Tessler, Merlis, Meir; ICML 2021), '
            "from estimators to tables and networks: what the paper says, and what we found.</p>",
            page.verdict_counts(claims),
            page.verdict_map((section.title, section.claims) for section in sections),
            page.CONTENTS,
            f"<p>{escape(lead)}</p>",
            *(section.html() for section in sections),
            f'<p class="small">{escape(footer)}</p>',
        ]
        return page.page("EBQL, reproduced", body)


def check_names(names: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """Return the named figures in order and without duplicates; all of them if none is named.

    Names in `others` are accepted too, but not returned.
    """
    for name in names:
        if name not in FIGURES and name not in others:
            raise unknown_name("figure", name, [*FIGURES, *others])
    return [name for name in FIGURES if name in names or not names]


def count_steps(names: Sequence[str]) -> int:
    """Return how often `Reproduction.make` calls `progress`."""
    needs_curves = NEED_LEARNING_CURVES & set(names)
    n_curves = len(REGIMES) * len(WORLDS) * len(AGENTS) if needs_curves else 0
    return 1 + n_curves + sum(FIGURES[name] for name in names)
