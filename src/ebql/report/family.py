"""The family's studies from start to end: run them, write data and pictures, say what was found."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from ebql.errors import InputError
from ebql.experiments import adaptive, exploration, family
from ebql.experiments.adaptive import ADAPTIVE, FIXED, SPLIT_WORLDS, SplitCell
from ebql.experiments.chains import REGIMES, Margin, margins
from ebql.experiments.tables import Table, regime_table
from ebql.report import family_plots
from ebql.report.images import png
from ebql.report.plots import regime_map
from ebql.runs import output_folder, provenance, write_bytes, write_csv, write_json


class FamilyStudy:
    """Makes the studies one by one."""

    def __init__(self, out: str | Path, *, seeds: int, episodes: int) -> None:
        """Check the settings and the output folder, before anything is run."""
        if seeds < 2:
            raise InputError(f"An interval over seeds needs at least 2 of them, not {seeds}.")
        if episodes < 1:
            raise InputError(f"episodes must be at least 1, not {episodes}.")
        self.out = output_folder(out)
        self.seeds, self.episodes = seeds, episodes

    def make(self, progress: Callable[[str], None]) -> list[str]:
        """Run and write everything; return what was found, a line each. `progress` hears of every step."""
        told = []
        seeds, episodes = self.seeds, self.episodes
        courses = family.run_family(progress, seeds=seeds, episodes=episodes)
        cells = margins(courses, agents=family.RELATIVES)
        self._write("standings", family.standings_table(courses))
        self._write("regimes", regime_table(cells), regime_map(cells, "each method"))
        regimes = family_plots.shown_regimes(courses)
        self._picture("bias", family_plots.bias_over_time(courses, regimes))
        told.append(ahead_in_words(cells))

        points = family.run_arms(progress, seeds=seeds, episodes=episodes)
        self._write("arms", family.arms_table(points), family_plots.arms_figure(points, family.ARM_STD))

        splits = adaptive.run_splits(progress, seeds=seeds, episodes=episodes)
        self._write("splits", adaptive.splits_table(splits), family_plots.splits_figure(splits))
        told += [splits_in_words(splits, world) for world in SPLIT_WORLDS]

        explored = exploration.run_exploration(progress, seeds=seeds, episodes=episodes)
        figure = family_plots.exploration_figure(explored)
        self._write("exploration", exploration.exploration_table(explored), figure)

        made_by = {"made_by": provenance(), "seeds": seeds, "episodes": episodes, "found": told}
        write_json(self.out / "made_by.json", made_by)
        return told

    def _write(self, name: str, table: Table, figure: Figure | None = None) -> None:
        write_csv(self.out / f"{name}.csv", table.columns, table.rows)
        if figure is not None:
            self._picture(name, figure)

    def _picture(self, name: str, figure: Figure) -> None:
        write_bytes(self.out / f"{name}.png", png(figure))


def count_steps() -> int:
    """How many steps `progress` will hear of."""
    bandits = len(family.BANDIT_REGIMES) * len(family.FAMILY)
    splits = len(SPLIT_WORLDS) * len(REGIMES) * (1 + len(FIXED))
    return len(REGIMES) * len(family.FAMILY) + bandits + splits + 2 * len(exploration.WAYS)


def ahead_in_words(cells: Sequence[Margin]) -> str:
    """In how many regimes each method is surely ahead of both Q-learning and double Q-learning."""
    counts = {cell.agent.label: 0 for cell in cells}
    for cell in cells:
        counts[cell.agent.label] += cell.margin > cell.half_width
    regimes = len({cell.regime.name for cell in cells})
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{label} {count}" for label, count in ranked)
    return f"Regimes of {regimes} in which a method is ahead of both QL and DQL (95% intervals): {listed}."


def splits_in_words(cells: Sequence[SplitCell], world: str) -> str:
    """In how many regimes the adaptive split is surely ahead of, or behind, one selector and the best."""
    mine = [cell for cell in cells if cell.world == world]
    one = [cell for cell in mine if cell.agent == FIXED[0]]
    best = [
        max((c for c in mine if c.regime == regime and c.agent != ADAPTIVE), key=lambda c: c.rate)
        for regime in dict.fromkeys(c.regime for c in mine)
    ]
    return (
        f"{world}: against one selector the adaptive split is {_counted(one)}; "
        f"against the fixed split that turned out best in each regime, {_counted(best)}."
    )


def _counted(cells: Sequence[SplitCell]) -> str:
    ahead = sum(c.rate_margin > c.rate_half_width for c in cells)
    behind = sum(c.rate_margin < -c.rate_half_width for c in cells)
    mean = sum(c.rate_margin for c in cells) / len(cells)
    return f"ahead in {ahead} and behind in {behind} of {len(cells)} regimes (mean margin {mean:+.4f})"
