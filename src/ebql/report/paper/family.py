"""The family's studies from start to end: run them, write data and pictures, say what was found."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from ebql.errors import InputError
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.paper.chains.curves import REGIMES, Margin, margins
from ebql.paper.family import adaptive, exploration
from ebql.paper.family import maps as family
from ebql.paper.family.adaptive import ADAPTIVE, FIXED, SPLIT_WORLDS, SplitCell
from ebql.paper.tables import Table, regime_table
from ebql.report.images import png
from ebql.report.paper import family_plots
from ebql.report.paper.plots import regime_map
from ebql.runs import output_folder, provenance, write_bytes, write_csv, write_json


class FamilyStudy:
    """Makes the studies one by one."""

    def __init__(self, out: str | Path, *, seeds: int, episodes: int) -> None:
        """Check the settings and the output folder, before anything is run."""
        if seeds < FEWEST_SEEDS:
            raise InputError(f"An interval over seeds needs at least {FEWEST_SEEDS} of them, not {seeds}.")
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
        told.append(all_worlds_in_words(splits))

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
    regimes = dict.fromkeys(c.regime for c in mine)
    rivals = [[c for c in mine if c.regime == regime and c.agent != ADAPTIVE] for regime in regimes]
    one = [each[0] for each in rivals]
    highest = [max(each, key=lambda c: c.rate) for each in rivals]
    nearest = [min(each, key=lambda c: c.squared_error) for each in rivals]
    return (
        f"{world}, {len(rivals)} regimes. Correct-action rate of the adaptive split: against one selector "
        f"{_counted([(c.rate_margin, c.rate_half_width) for c in one])}, against the regime's best fixed one "
        f"{_counted([(c.rate_margin, c.rate_half_width) for c in highest])}. Squared error: against one "
        f"selector {_counted([(c.error_margin, c.error_half_width) for c in one])}, against the best fixed "
        f"one {_counted([(c.error_margin, c.error_half_width) for c in nearest])}."
    )


def all_worlds_in_words(cells: Sequence[SplitCell]) -> str:
    """The mean rate and squared error of every split over all worlds and regimes."""
    listed = []
    for agent in (ADAPTIVE, *FIXED):
        mine = [c for c in cells if c.agent == agent]
        rate = sum(c.rate for c in mine) / len(mine)
        error = sum(c.squared_error for c in mine) / len(mine)
        listed.append(f"{agent.label} {rate:.4f} / {error:.4f}")
    return f"Mean rate / squared error over all worlds and regimes: {', '.join(listed)}."


def _counted(margins: Sequence[tuple[float, float]]) -> str:
    """How many of the (margin, half-width) pairs are surely positive, and surely negative."""
    ahead = sum(margin > half for margin, half in margins)
    behind = sum(margin < -half for margin, half in margins)
    mean = sum(margin for margin, _ in margins) / len(margins)
    return f"ahead in {ahead} and behind in {behind} (mean gain {mean:+.4f})"
