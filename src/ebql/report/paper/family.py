"""The studies of related methods from start to end: run them, write tables and pictures, sum up results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from ebql.errors import InputError
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.paper.chains.curves import Margin
from ebql.paper.chains.rows import regime_table
from ebql.paper.family import adaptive, estimators, exploration
from ebql.paper.family import maps as family
from ebql.paper.family.adaptive import ADAPTIVE, FIXED, SplitCell
from ebql.paper.family.outcomes import Outcomes, core_minutes
from ebql.paper.family.outcomes import Part as TablePart
from ebql.paper.family.worlds import ARM_STD
from ebql.paper.table import Table
from ebql.report.images import png
from ebql.report.paper import estimator_plots, family_plots
from ebql.report.paper.chains import regime_map
from ebql.runs import output_folder, provenance, write_bytes, write_csv, write_json

Part = Literal["all", "estimators", "tables"]
REPLICATIONS_PER_SEED = 20  # of the map of estimators
PARTS = "parts"
"""The folder of finished outcomes, inside the output folder."""


class FamilyStudy:
    """Runs the studies of related methods, and writes their tables and pictures to a folder.

    `part` is the map of estimators, which takes two minutes, the studies of tables, or both. Finished parts
    of the studies of tables are kept in the folder; a study with the same settings continues from them.
    """

    def __init__(self, out: str | Path, *, seeds: int, episodes: int, part: Part = "all") -> None:
        """Check the settings and the output folder, before anything is run."""
        if seeds < FEWEST_SEEDS:
            raise InputError(f"An interval over seeds needs at least {FEWEST_SEEDS} seeds, not {seeds}.")
        if episodes < 1:
            raise InputError(f"episodes must be at least 1, not {episodes}.")
        self.out = output_folder(out)
        self.seeds, self.episodes, self.part = seeds, episodes, part

    def make(self, progress: Callable[[str], None]) -> list[str]:
        """Run and write the part; return the results in sentences. Call `progress` after each step."""
        sentences = []
        if self.part != "tables":
            sentences += self._estimators(progress)
        if self.part != "estimators":
            sentences += self._tables(progress)
        return sentences

    def _estimators(self, progress: Callable[[str], None]) -> list[str]:
        replications = REPLICATIONS_PER_SEED * self.seeds
        points = estimators.run_estimators(progress, replications=replications)
        table = estimators.estimators_table(points)
        self._write("estimators", table, estimator_plots.estimators_map(points))
        self._picture("line", estimator_plots.bias_line(points))
        sentences = [dominated_in_words(points)]
        made_by = {"made_by": provenance(), "replications": replications, "found": sentences}
        write_json(self.out / "estimators.json", made_by)
        return sentences

    def _tables(self, progress: Callable[[str], None]) -> list[str]:
        sentences = []
        outcomes = Outcomes(self.out / PARTS, progress, seeds=self.seeds, episodes=self.episodes)
        results = outcomes.of(family.family_parts())
        cells = family.family_margins(results)
        standings = family.standings_table(results)
        rows = family.standings(standings)
        self._write("standings", standings, family_plots.tables_line(rows))
        self._write("regimes", regime_table(cells), regime_map(cells, "each method"))
        self._picture("bias", family_plots.bias_over_time(results))
        sentences += [ahead_in_words(cells), dominated_tables_in_words(rows)]

        points = family.arms_points(outcomes.of(family.arms_parts()))
        self._write("arms", family.arms_table(points), family_plots.arms_figure(points, ARM_STD))

        splits = adaptive.split_cells(outcomes.of(adaptive.split_parts()))
        self._write("splits", adaptive.splits_table(splits), family_plots.splits_figure(splits))
        sentences += [splits_in_words(splits, world) for world in family.CHAINS]
        sentences.append(all_worlds_in_words(splits))

        explored = exploration.exploration_results(outcomes.of([e.part for e in exploration.EXPLORING]))
        figure = family_plots.exploration_figure(explored)
        self._write("exploration", exploration.exploration_table(explored), figure)

        made_by = {"made_by": provenance(), "seeds": self.seeds, "episodes": self.episodes}
        write_json(self.out / "made_by.json", {**made_by, "found": sentences})
        return sentences

    def core_minutes(self) -> float:
        """Estimate the processor time that is left of the studies of tables, from short runs."""
        if self.part == "estimators":
            return 0.0
        outcomes = Outcomes(self.out / PARTS, _ignore, seeds=self.seeds, episodes=self.episodes)
        return core_minutes(outcomes.missing(_table_parts()), self.seeds, self.episodes)

    def _write(self, name: str, table: Table, figure: Figure | None = None) -> None:
        write_csv(self.out / f"{name}.csv", table.columns, table.rows)
        if figure is not None:
            self._picture(name, figure)

    def _picture(self, name: str, figure: Figure) -> None:
        write_bytes(self.out / f"{name}.png", png(figure))


def count_steps(part: Part = "all") -> int:
    """Return how often `FamilyStudy.make` calls `progress`."""
    mapped = 0 if part == "tables" else len(estimators.METHODS)
    return mapped if part == "estimators" else mapped + len(_table_parts())


def _table_parts() -> list[TablePart]:
    explored = [exploring.part for exploring in exploration.EXPLORING]
    return [*family.family_parts(), *family.arms_parts(), *adaptive.split_parts(), *explored]


def _ignore(step: str) -> None:
    del step


def dominated_in_words(points: Sequence[estimators.EstimatorPoint]) -> str:
    """Say which estimators are dominated everywhere, and which nowhere."""
    counts, worlds = estimators.dominated(points), estimators.n_worlds()
    always = [label for label, count in counts.items() if count == worlds]
    never = [label for label, count in counts.items() if count == 0]
    return (
        f"Map of estimators, {worlds} worlds. Methods with a rival that has both a smaller |bias| and a "
        f"smaller MSE: in every world {_listed(always)}; in no world {_listed(never)}."
    )


def dominated_tables_in_words(rows: Sequence[family.Standing]) -> str:
    """Say which tables are dominated in every regime of both chains, and which in none."""
    counts, regimes = family.dominated(rows), len({(row.world, row.regime) for row in rows})
    always = [agent for agent, count in counts.items() if count == regimes]
    never = [agent for agent, count in counts.items() if count == 0]
    return (
        f"Tables on two chains, {regimes} regimes in all. Methods with a rival that chooses better and has a "
        f"smaller |bias|: in every regime {_listed(always)}; in no regime {_listed(never)}."
    )


def _listed(labels: Sequence[str]) -> str:
    return "; ".join(labels) or "none"


def ahead_in_words(cells: Sequence[Margin]) -> str:
    """Say in how many regimes each method is significantly ahead of both Q-learning and double Q-learning."""
    counts = {cell.agent.label: 0 for cell in cells}
    for cell in cells:
        counts[cell.agent.label] += cell.margin > cell.half_width
    regimes = len({cell.regime.name for cell in cells})
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{label} {count}" for label, count in ranked)
    return (
        f"Number of regimes, of {regimes}, in which a method is ahead of both QL and DQL (95% intervals): "
        f"{listed}."
    )


def splits_in_words(cells: Sequence[SplitCell], world: str) -> str:
    """Say in how many regimes the adaptive split is significantly ahead of or behind fixed splits.

    The fixed splits are a single selecting member and the best fixed split of each regime.
    """
    mine = [cell for cell in cells if cell.world == world]
    regimes = dict.fromkeys(c.regime for c in mine)
    rivals = [[c for c in mine if c.regime == regime and c.agent in FIXED] for regime in regimes]
    single = [each[0] for each in rivals]
    best_rate = [max(each, key=lambda c: c.rate) for each in rivals]
    lowest_error = [min(each, key=lambda c: c.squared_error) for each in rivals]
    return (
        f"{world}, {len(rivals)} regimes. Correct-action rate of the adaptive split: against one selecting "
        f"member {_counted([(c.rate_margin, c.rate_half_width) for c in single])}, against the regime's best "
        f"fixed split {_counted([(c.rate_margin, c.rate_half_width) for c in best_rate])}. Squared error: "
        f"against one selecting member {_counted([(c.error_margin, c.error_half_width) for c in single])}, "
        "against the regime's best fixed split "
        f"{_counted([(c.error_margin, c.error_half_width) for c in lowest_error])}."
    )


def all_worlds_in_words(cells: Sequence[SplitCell]) -> str:
    """State the mean rate and squared error of every split over all worlds and regimes."""
    listed = []
    for agent in (ADAPTIVE, *FIXED):
        mine = [c for c in cells if c.agent == agent]
        rate = sum(c.rate for c in mine) / len(mine)
        error = sum(c.squared_error for c in mine) / len(mine)
        listed.append(f"{agent.label} {rate:.4f} / {error:.4f}")
    return f"Mean rate / squared error over all worlds and regimes: {', '.join(listed)}."


def _counted(margins: Sequence[tuple[float, float]]) -> str:
    """Say how many of the (margin, half-width) pairs are significantly positive and negative."""
    ahead = sum(margin > half for margin, half in margins)
    behind = sum(margin < -half for margin, half in margins)
    mean = sum(margin for margin, _ in margins) / len(margins)
    return f"ahead in {ahead} and behind in {behind} (mean gain {mean:+.4f})"
