"""The paper's figures from start to end: run the experiments, write data, pictures, ledger and report."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ebql.analysis.scores import read_scores
from ebql.errors import InputError, unknown_name
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.paper import short_study, tables
from ebql.paper.chains.claims import figure_3_claims, figure_5_claims
from ebql.paper.chains.curves import AGENTS, REGIMES, WORLDS, Courses, Margin, margins, run_courses
from ebql.paper.ledger import Claim, Verdict
from ebql.paper.splits.claims import estimator_claims, figure_1_claims, figure_2_claims
from ebql.paper.splits.curves import ARMS, GAPS, SAMPLES, best_splits, split_curves
from ebql.report import page
from ebql.report.curves import learning_curves
from ebql.report.images import png
from ebql.report.paper import plots
from ebql.report.paper.meta_chain import figure_4
from ebql.report.study.report import StudyReport
from ebql.report.study.words import caveats, further, headline
from ebql.runs import output_folder, provenance, write_bytes, write_csv, write_json, write_text
from ebql.studies.plan import plan
from ebql.tabular import Metric

# Every figure, with the number of steps that `progress` hears of while it is made.
FIGURES = {
    "fig1": len(GAPS) + 1,
    "fig2": len(ARMS) + 1,
    "fig3": len(REGIMES),
    "fig4": 1,
    "fig5": len(REGIMES),
    "regimes": 1,
    "deep": short_study.PIECES + 1,
}
NEEDS_COURSES = {"fig3", "fig5", "regimes"}

# What a person should see first, of all regimes: the middle of the grid.
SHOWN_FIRST = REGIMES[1]


@dataclass(frozen=True)
class Section:
    """One figure of the report: what the paper says, the picture, and what was found."""

    title: str
    says: str
    content: str
    claims: Sequence[Claim] = ()

    def html(self) -> str:
        """The section as HTML."""
        found = f"<h3>What we found</h3>{page.findings(self.claims)}" if self.claims else ""
        says = f'<p class="says"><b>The paper:</b> {escape(self.says)}</p>'
        return f"<h2>{escape(self.title)}</h2>{says}{self.content}{found}"


class Reproduction:
    """Makes the figures one by one and keeps what the ledger and the report need of them."""

    def __init__(
        self, out: str | Path, *, seeds: int, episodes: int, deep_steps: int = short_study.STEPS
    ) -> None:
        """Check the settings and the output folder, before anything is run."""
        if seeds < FEWEST_SEEDS:
            raise InputError(f"An interval over seeds needs at least {FEWEST_SEEDS} of them, not {seeds}.")
        if episodes < 1:
            raise InputError(f"episodes must be at least 1, not {episodes}.")
        if deep_steps < 1:
            raise InputError(f"deep-steps must be at least 1, not {deep_steps}.")
        self.out = output_folder(out)
        self.seeds, self.episodes, self.deep_steps = seeds, episodes, deep_steps
        self.progress: Callable[[str], None] = lambda _: None
        self.sections: list[Section] = []
        self.claims: list[Claim] = []

    def make(self, names: Sequence[str], progress: Callable[[str], None]) -> list[Claim]:
        """Make the named figures, then the ledger and the report; return the claims with verdicts.

        `progress` hears of every finished step.
        """
        self.progress = progress
        if "deep" in names:  # what can't be run is refused before anything else is
            plan(short_study.short_study(self.deep_steps), self._deep_folder)
        self._section(
            "The estimators",
            "Of N samples of each of m arms, let one part select the arm and the rest measure it. The "
            "result is biased downwards, and for two arms alike an even split is never the best one.",
            "",
            estimator_claims(),
        )
        self.progress("theory")
        courses = self._courses() if NEEDS_COURSES & set(names) else Courses(())
        makers: dict[str, Callable[[], None]] = {
            "fig1": self._fig1,
            "fig2": self._fig2,
            "fig3": lambda: self._fig3(courses),
            "fig4": self._fig4,
            "fig5": lambda: self._fig5(courses),
            "regimes": lambda: self._regimes(courses),
            "deep": self._deep,
        }
        for name in names:
            makers[name]()
        write_json(self.out / "ledger.json", self._ledger())
        write_text(self.out / "report.html", self._report())
        return self.claims

    @property
    def _deep_folder(self) -> Path:
        return self.out / "deep-study"

    def _courses(self) -> Courses:
        courses = run_courses(self.progress, seeds=self.seeds, episodes=self.episodes)
        self._table("courses", tables.final_table(courses))
        return courses

    def _fig1(self) -> None:
        curves = split_curves(self.progress)
        self._table("fig1", tables.figure_1_table(curves))
        self._section(
            "Figure 1: error against the split",
            "For two Gaussian arms the mean squared error has its minimum below an even split whatever the "
            "gap; the best share of selecting samples rises from 0 to 0.4 with the gap and falls again.",
            self._picture("fig1", plots.figure_1(curves), "Mean squared error against the split ratio"),
            figure_1_claims(curves),
        )

    def _fig2(self) -> None:
        results = best_splits(self.progress)
        self._table("fig2", tables.figure_2_table(results))
        self._section(
            "Figure 2: the best split",
            "With 2, 4 or 6 arms the best split selects with fewer than half of the samples over a large "
            "range of gaps, so an ensemble of more than two errs less than the double estimator.",
            self._picture("fig2", plots.figure_2(results), "Best split ratio against the normalised gap"),
            figure_2_claims(results),
        )

    def _fig3(self, courses: Courses) -> None:
        self._table("fig3", tables.figure_3_table(courses))
        self._section(
            "Figure 3: how often the choice is right",
            "Q-learning excels where risk pays, double Q-learning where it costs, and EBQL over both; larger "
            "ensembles do better. How the agents explored is not said, so choose a regime.",
            self._in_every_regime("fig3", plots.figure_3, courses, "Correct-action rate over episodes"),
            figure_3_claims(courses),
        )

    def _fig4(self) -> None:
        self._section(
            "Figure 4: the Meta-Chain",
            "Chains that differ in the mean reward behind B. Nothing can be earned in half of them but by "
            "taking the risk, and in the other half but by leaving it.",
            self._picture("fig4", figure_4(), "One chain of the Meta-Chain MDP"),
        )

    def _fig5(self, courses: Courses) -> None:
        self._table("fig5", tables.figure_5_table(courses))
        self._table("fig5-panels", tables.bias_table(courses))
        self._section(
            "Figure 5: how wrong the values are",
            "The biases of Q-learning and double Q-learning go to zero from above and from below; that of "
            "EBQL shrinks as the ensemble grows. Zero tables make an early bias of their own.",
            self._in_every_regime("fig5", plots.figure_5, courses, "Estimation bias over episodes"),
            figure_5_claims(courses),
        )

    def _regimes(self, courses: Courses) -> None:
        greedy = margins(courses)
        behaviour = margins(courses, Metric.BEHAVIOUR_CORRECT)
        self._table("regimes", tables.regime_table([*greedy, *behaviour]))
        self._section(
            "The regime map: where EBQL beats both",
            "On the Meta-Chain, where neither optimism nor pessimism pays throughout, EBQL excels.",
            self._picture("regimes", plots.regime_map(greedy), "Margin of EBQL in every regime")
            + f"<p>{escape(_map_in_words(greedy))}</p>",
        )

    def _deep(self) -> None:
        folder = self._deep_folder
        short_study.perform(
            short_study.short_study(self.deep_steps), folder, lambda: self.progress("deep study")
        )
        study = read_scores(folder)
        report = StudyReport(study, "DQN, double DQN and EBQL on MinAtar Breakout", folder / "report")
        report.write()
        sentences = [
            headline(study, report.found).sentence,
            *further(study, report.found),
            *caveats(study, report.found),
        ]
        self._section(
            "The deep agents: score and bias on MinAtar Breakout",
            "With networks, EBQL scores higher than DQN and double DQN on eleven Atari games. How biased "
            "their values are is not measured there; here it is, on a game that a CPU can learn.",
            self._picture("deep", learning_curves(study.groups), "Return and measured bias over agent steps")
            + "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
            + f'<p><a href="{folder.name}/report/report.html">All of this short study</a>; '
            "longer ones, with more seeds and games, are run by ebql sweep.</p>",
        )

    def _section(self, title: str, says: str, content: str, claims: Sequence[Claim] = ()) -> None:
        self.sections.append(Section(title, says, content, claims))
        self.claims += claims

    def _table(self, name: str, table: tables.Table) -> None:
        write_csv(self.out / f"{name}.csv", table.columns, table.rows)

    def _picture(self, name: str, figure: Figure, description: str) -> str:
        image = png(figure)
        write_bytes(self.out / f"{name}.png", image)
        self.progress(f"{name}.png")
        return page.picture(image, description)

    def _in_every_regime(
        self, name: str, draw: Callable[..., Figure], courses: Courses, description: str
    ) -> str:
        """Draw one picture a regime, as files and as tabs; the first one shown is also the plain `name`."""
        ordered = sorted(courses.regimes, key=lambda regime: regime != SHOWN_FIRST)
        panels = {}
        for regime in ordered:
            figure = draw(courses, regime)
            if regime == SHOWN_FIRST:
                write_bytes(self.out / f"{name}.png", png(figure))
            panels[regime.name] = self._picture(f"{name}-{regime.slug}", figure, description)
        return page.tabs(name, panels)

    def _ledger(self) -> dict[str, Any]:
        return {
            "made_by": provenance(),
            "seeds": self.seeds,
            "episodes": self.episodes,
            "samples": SAMPLES,
            "claims": [claim.as_json() for claim in self.claims],
        }

    def _report(self) -> str:
        counts = Counter(claim.verdict for claim in self.claims)
        made = provenance()
        lead = (
            f"{len(self.claims)} claims of the paper's sections 4 to 6.1, measured: "
            f"{counts[Verdict.HOLDS]} hold, {counts[Verdict.FAILS]} fail, {counts[Verdict.MIXED]} are mixed. "
            "Each is listed with its evidence: it holds where the 95% interval over seeds lies on the "
            "claimed side, and fails if it holds nowhere and somewhere the interval lies on the other. "
            "Intervals are not corrected for being many. Rates are of the greedy choice, unless it says so."
        )
        versions = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
        footer = (
            f"{self.seeds} seeds, {self.episodes} episodes, {SAMPLES} samples. Made on {made['date']} by "
            f"“{made['command']}” with {versions}."
        )
        body = [
            "<h1>How to estimate the value of the best action without fooling yourself</h1>",
            '<p class="lead">Ensemble Bootstrapped Q-Learning (Peer, Tessler, Merlis, Meir; ICML 2021), '
            "from statistics to tables and networks: what the paper says, and what we found.</p>",
            f"<p>{escape(lead)}</p>",
            *(section.html() for section in self.sections),
            f'<p class="small">{escape(footer)}</p>',
        ]
        return page.page("EBQL, reproduced", body)


def _map_in_words(cells: Sequence[Margin]) -> str:
    """What the regime map shows, counted."""
    ahead = [cell for cell in cells if cell.margin > cell.half_width]
    behind = [cell for cell in cells if cell.margin < -cell.half_width]
    best, worst = (choose(cells, key=lambda cell: cell.margin) for choose in (max, min))
    return (
        f"Of {len(cells)} cells EBQL is ahead of both rivals in {len(ahead)} and behind one in "
        f"{len(behind)}, with 95% intervals that exclude zero. It gains most under {best.regime.name} "
        f"({best.margin:+.3f} with {best.agent.label}, over {best.rival}) and loses most under "
        f"{worst.regime.name} ({worst.margin:+.3f} with {worst.agent.label}, against {worst.rival}). "
        "Where the agent rarely explores, an optimistic value is soon tried out and corrected, while a "
        "pessimistic one is left alone; that is the regime in which Q-learning is hard to beat."
    )


def check_names(names: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """Return the figures asked for, each once and in order; all of them if none is named.

    The names in `others` are known too, but are not figures that are made here.
    """
    for name in names:
        if name not in FIGURES and name not in others:
            raise unknown_name("figure", name, [*FIGURES, *others])
    return [name for name in FIGURES if name in names or not names]


def count_steps(names: Sequence[str]) -> int:
    """How many steps `progress` will hear of."""
    courses = len(REGIMES) * len(WORLDS) * len(AGENTS) if NEEDS_COURSES & set(names) else 0
    return 1 + courses + sum(FIGURES[name] for name in names)
