"""The data of table 1 and figure 6 as tables, the paper's scores and ours."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from ebql.analysis.human_scores import normalized
from ebql.paper.atari import published
from ebql.paper.atari.ends import End, paper_ends
from ebql.paper.atari.runs import Cell, NormalizedCurve, at_published_length
from ebql.paper.atari.scores import AGENTS, FRAMES_PER_STEP, FULL, PAPER
from ebql.paper.table import Row, Table

TABLE_1_COLUMNS = (
    "game",
    "agent",
    "source",
    "score",
    "low",
    "high",
    "human_normalized",
    "bias",
    "seeds",
    "least_steps",
    "most_steps",
    "most_frames",
    "preset",
    "departures",
)


def table_1_table(cells: Sequence[Cell]) -> Table:
    """Return one row for each score of the paper, then one for each of ours; what is unknown is empty.

    If some of ours have the length of the sample-efficiency literature, its scores come last.
    """
    others = _published_rows() if at_published_length(cells) else ()
    return Table(TABLE_1_COLUMNS, (*_paper_rows(), *map(_own_row, cells), *others))


def figure_6_table(curves: Iterable[NormalizedCurve], ends: Iterable[End]) -> Table:
    """Return one row for each point of our curves, then what they are compared with, and the paper's ends."""
    columns = (
        *("agent", "source", "games", "seeds", "steps", "frames"),
        *("mean", "median", "mean_smoothed", "median_smoothed"),
    )
    rows: list[Row] = []
    for curve in curves:
        smooth = curve.smoothed()
        values = (curve.mean, curve.median, smooth.mean, smooth.median)
        points = zip(curve.steps.tolist(), *(column.tolist() for column in values), strict=True)
        about = (curve.agent, "ours", " ".join(curve.games), curve.seeds)
        rows += [(*about, step, FRAMES_PER_STEP * step, *point) for step, *point in points]
    rows += [_end_row(end) for end in dict.fromkeys((*ends, *paper_ends()))]
    return Table(columns, tuple(rows))


def _paper_rows() -> Iterator[Row]:
    steps = (FULL.steps, FULL.steps, FRAMES_PER_STEP * FULL.steps)
    for game, row in PAPER.items():
        players = {"human": row.human, "random": row.random}
        for player, score in players.items():
            yield game, player, "paper", score, "", "", normalized(game, score), *[""] * 7
        for agent in AGENTS:
            score = row.of(agent)
            yield game, agent, "paper", score, "", "", normalized(game, score), "", FULL.seeds, *steps, "", ""


def _published_rows() -> Iterator[Row]:
    steps = (published.STEPS, published.STEPS, FRAMES_PER_STEP * published.STEPS)
    for own in published.PUBLISHED:
        for game, score in own.scores.items():
            about = (game, own.method, own.source, score, "", "", normalized(game, score))
            yield *about, "", "", *steps, "", ""


def _own_row(cell: Cell) -> Row:
    known = isfinite(cell.half_width)
    low, high = (cell.mean - cell.half_width, cell.mean + cell.half_width) if known else ("", "")
    return (
        *(cell.game, cell.agent, "ours", cell.mean, low, high, normalized(cell.game, cell.mean)),
        "" if cell.bias is None else cell.bias,
        *(cell.seeds, *cell.steps, FRAMES_PER_STEP * cell.steps[1], cell.preset, " ".join(cell.departures)),
    )


def _end_row(end: End) -> Row:
    seeds = "" if end.seeds is None else end.seeds
    about = (end.method, end.source, " ".join(end.games), seeds, end.steps, FRAMES_PER_STEP * end.steps)
    return (*about, end.mean, end.median, "", "")
