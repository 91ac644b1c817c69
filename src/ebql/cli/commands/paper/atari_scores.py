"""`ebql reproduce table1` and `fig6`: the paper's Atari scores beside those of your runs."""

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path

from rich.table import Table

from ebql.analysis.human_scores import normalized
from ebql.analysis.runs import RunGroup, change_notes
from ebql.analysis.statistics import Interval
from ebql.cli.commands.paper.atari_early import published_table, sources, verdict
from ebql.estimators.intervals import FEWEST_SEEDS
from ebql.paper.atari.claims import small_sample_claim
from ebql.paper.atari.ends import End, curves_and_ends, paper_ends
from ebql.paper.atari.rows import figure_6_table, table_1_table
from ebql.paper.atari.runs import (
    Aggregate,
    Cell,
    NormalizedCurve,
    aggregates,
    at_published_length,
    atari_groups,
    cell,
    cells_of,
    shared_games,
)
from ebql.paper.atari.scores import (
    AGENTS,
    COMMAND_NAMES,
    DOUBLE_DQN,
    DQN,
    EBQL,
    FRAMES_PER_STEP,
    FULL,
    GAMES,
    PAPER,
    PRESET,
    Summary,
    environment_id,
    paper_scores,
    summary,
)
from ebql.runs import output_folder, provenance, write_bytes, write_csv, write_json
from ebql.terminal.console import Console
from ebql.terminal.wording import short

_OUTLIER = "VideoPinball"  # its human is 1,040.7 points above random, where agents have 100,000 and more
_WIDEST = 120  # columns of text that the table may take
_SHORT = {DQN: "DQN", DOUBLE_DQN: "DDQN", EBQL: "EBQL"}


def scores(names: Sequence[str], runs: Sequence[Path], out: Path, *, accept_changes: bool = False) -> None:
    """Print what is asked for, `table1` or `fig6`, and write it to `out`."""
    groups = atari_groups(runs, accept_changes=accept_changes) if runs else []
    folder = output_folder(out)
    console = Console()
    for name in names:
        {"table1": _table_1, "fig6": _figure_6}[name](groups, folder, console)
    notes = change_notes([run for group in groups for run in group.runs])
    for line in (*_departures([cell(group) for group in groups]), *notes):
        console.print(line, highlight=False, markup=False)


def _table_1(groups: Sequence[RunGroup], folder: Path, console: Console) -> None:
    cells = [cell(group) for group in groups]
    _print_whole(console, _score_table(cells))
    if others := [cell for cell in cells if cell.agent not in AGENTS]:
        _print_whole(console, _other_table(others))
    if found := aggregates(groups):
        _print_whole(console, _aggregate_table(found))
    if any(cell.bias is not None for cell in cells):
        _print_whole(console, _bias_table(cells))
    if early := at_published_length(cells):
        _print_whole(console, published_table(early))
        for line in sources():
            console.print(line, highlight=False, markup=False)
    if claim := small_sample_claim(cells):
        for line in verdict(claim):
            console.print(line, highlight=False, markup=False)
        write_json(folder / "atari_ledger.json", {"made_by": provenance(), "claims": [claim.as_json()]})
    for line in _missing(cells):
        console.print(line, highlight=False, markup=False)
    table = table_1_table(cells)
    path = write_csv(folder / "table1.csv", table.columns, table.rows)
    console.print(f"→ {path}", highlight=False, markup=False, soft_wrap=True)


def _aggregate_table(found: Sequence[Aggregate]) -> Table:
    title = "Human-normalised scores of our runs over shared games"
    few = any(not own.mean.known for own in found)
    title += f" (an interval needs {FEWEST_SEEDS} seeds or more)" if few else " (95% intervals)"
    table = Table(
        *("agent", "games", "seeds", "mean", "median", "IQM"), title=title, box=None, pad_edge=False
    )
    for own in found:
        table.add_row(
            own.agent, str(own.games), str(own.seeds), *map(_share, (own.mean, own.median, own.iqm))
        )
    return table


def _bias_table(cells: Sequence[Cell]) -> Table:
    title = "Bias of our agents in the rewards that they learn from"
    table = Table("game", *AGENTS, title=title, box=None, pad_edge=False, min_width=len(title))
    own = [cells_of(cells, agent) for agent in AGENTS]
    for game in GAMES:
        biases = [by_game[game].bias if game in by_game else None for by_game in own]
        if biases != [None] * len(own):
            table.add_row(game, *map(_signed, biases))
    return table


def _signed(number: float | None) -> str:
    return "" if number is None else f"{number:+.2f}".replace("-", "−")


def _share(interval: Interval) -> str:
    ends = f" [{interval.low:.1%}, {interval.high:.1%}]" if interval.known else ""
    return f"{interval.value:.1%}{ends}".replace("-", "−")


def _print_whole(console: Console, table: Table) -> None:
    """Print a table in full width: in a narrow terminal or a file, our scores would be cut off."""
    Console(file=console.file, width=max(_WIDEST, console.width)).print(table)


def _score_table(cells: Sequence[Cell]) -> Table:
    table = Table(
        title=f"Table 1: the paper ({FULL.seeds} seeds, {short(FULL.steps)} agent steps, "
        f"{short(FRAMES_PER_STEP * FULL.steps)} frames) and ours (± 95%; lowest to highest below "
        f"{FEWEST_SEEDS} seeds)",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("game\n")
    for heading in ("human\n", "random\n", *(f"paper\n{_SHORT[agent]}" for agent in AGENTS)):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent in AGENTS:
        table.add_column(f"ours\n{_SHORT[agent]}", justify="right", style="cyan", min_width=10)
    for game, row in PAPER.items():
        table.add_row(game, *(f"{score:.1f}" for score in row), *(_own(cells, game, a) for a in AGENTS))
    table.add_row()
    for row_of_text in _summary_rows(cells):
        table.add_row(*row_of_text)
    return table


def _own(cells: Sequence[Cell], game: str, agent: str) -> str:
    found = cells_of(cells, agent).get(game)
    if found is not None:
        return _in_words(found)
    variants = any(c.game == game and c.agent.startswith(f"{agent},") for c in cells)
    return "see below" if variants else "[dim]missing[/]"


def _in_words(cell: Cell) -> str:
    mark = "†" if cell.departures else ""
    interval, seen = "", ""
    if isfinite(cell.half_width):
        interval = f" ±{cell.half_width:.1f}"
    elif cell.seeds > 1:
        seen = f"\n{cell.lowest:.1f} to {cell.highest:.1f}"
    steps, frames = (
        "–".join(dict.fromkeys(short(factor * step) for step in cell.steps))
        for factor in (1, FRAMES_PER_STEP)
    )
    seeds = f"{cell.seeds} seed{'s' if cell.seeds > 1 else ''}"
    return f"{cell.mean:.1f}{interval}{mark}{seen}\n{seeds}, {steps}\n{frames} frames"


def _summary_rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """Return the human-normalised mean and median: over all games, and those that all our agents have."""
    shared = shared_games(cells)
    most = tuple(game for game in GAMES if game != _OUTLIER)
    rows = [
        _summary_row("mean", GAMES, lambda found: found.mean, cells),
        _summary_row(f"mean, without\n{_OUTLIER}", most, lambda found: found.mean, cells),
        _summary_row("median", GAMES, lambda found: found.median, cells),
    ]
    if shared and shared != GAMES:
        these = f"{len(shared)} game{'s' if len(shared) > 1 else ''}"
        rows.append(_summary_row(f"mean, {these}", shared, lambda found: found.mean, cells))
        rows.append(_summary_row(f"median, {these}", shared, lambda found: found.median, cells))
    return rows


def _summary_row(
    title: str, games: Sequence[str], statistic: Callable[[Summary], float], cells: Sequence[Cell]
) -> tuple[str, ...]:
    paper = [f"{statistic(summary(paper_scores(agent, games))):.0%}" for agent in AGENTS]
    ours = []
    for agent in AGENTS:
        own = cells_of(cells, agent)
        whole = all(game in own for game in games)
        ours.append(f"{statistic(summary({g: own[g].mean for g in games})):.0%}" if whole else "")
    return title, "100%", "0%", *paper, *ours


def _other_table(cells: Sequence[Cell]) -> Table:
    table = Table("game", "agent", "score", "of human", title="Other agents", box=None, pad_edge=False)
    for found in cells:
        share = f"{normalized(found.game, found.mean):.0%}"
        table.add_row(found.game, found.agent, _in_words(found).replace("\n", ", "), share)
    return table


def _departures(cells: Sequence[Cell]) -> list[str]:
    """Say which cells were not run with the paper's options, and which options differ."""
    by_options: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for found in cells:
        if found.departures:
            by_options.setdefault((found.preset, found.departures), []).append(
                f"{found.agent} on {found.game}"
            )
    return [
        f"† {_names(where, cells)}: preset {preset}, which differs from {PRESET} in {', '.join(options)}."
        for (preset, options), where in by_options.items()
    ]


def _names(where: Sequence[str], cells: Sequence[Cell]) -> str:
    """Return the names of these cells, or one word if they are all there are and many."""
    return "All of ours" if len(where) == len(cells) > len(AGENTS) else "; ".join(where)


def _missing(cells: Sequence[Cell]) -> list[str]:
    missing = [
        (game, agent) for agent in reversed(AGENTS) for game in GAMES if game not in cells_of(cells, agent)
    ]
    if not missing:
        return []
    game, agent = missing[0]
    run = f"{environment_id(game)} --agent {COMMAND_NAMES[agent]} --preset {PRESET} --steps {FULL.steps}"
    return [
        f"{len(missing)} of {len(GAMES) * len(AGENTS)} cells are missing. Each is {FULL.seeds} runs such as",
        f"  ebql train {run} --seed 0",
        "then `ebql reproduce table1 --runs runs`. `ebql plan table1` says what all of it costs here.",
    ]


def _figure_6(groups: Sequence[RunGroup], folder: Path, console: Console) -> None:
    from ebql.report.images import png
    from ebql.report.paper.atari import figure_6

    curves, ends = curves_and_ends(groups)
    _print_whole(console, _curve_table(curves, ends))
    table = figure_6_table(curves, ends)
    picture = write_bytes(folder / "fig6.png", png(figure_6(curves, ends)))
    path = write_csv(folder / "fig6.csv", table.columns, table.rows)
    if not curves:
        message = (
            "No runs: this is the paper alone. Add some with --runs DIR; "
            "`ebql plan table1` says what they cost."
        )
        console.print(message, highlight=False, markup=False)
    console.print(f"→ {picture}, {path}", highlight=False, markup=False, soft_wrap=True)


def _curve_table(curves: Sequence[NormalizedCurve], ends: Sequence[End]) -> Table:
    table = Table(
        *("agent", "source", "games", "seeds", "agent steps", "frames", "mean", "median"),
        title="Figure 6: human-normalised scores at the curves' last evaluation",
        box=None,
        pad_edge=False,
    )
    for end in dict.fromkeys((*paper_ends(), *ends)):
        source = "paper" if end.is_of_paper else "published"
        table.add_row(end.method, source, *_end(len(end.games), end.seeds, end.steps, end.mean, end.median))
    for curve in curves:
        end_of_ours = (int(curve.steps[-1]), float(curve.mean[-1]), float(curve.median[-1]))
        table.add_row(curve.agent, "ours", *_end(len(curve.games), curve.seeds, *end_of_ours), style="cyan")
    return table


def _end(games: int, seeds: int | None, steps: int, mean: float, median: float) -> tuple[str, ...]:
    return (
        *(str(games), "" if seeds is None else str(seeds), short(steps), short(FRAMES_PER_STEP * steps)),
        *(f"{mean:.0%}", f"{median:.0%}"),
    )
