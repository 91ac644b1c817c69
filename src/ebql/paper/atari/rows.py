"""The data of table 1 and figure 6 as tables, the paper's scores and ours."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from ebql.analysis.human_scores import normalized
from ebql.paper.atari import published
from ebql.paper.atari.runs import Cell, NormalizedCurve, at_published_length
from ebql.paper.atari.scores import AGENTS, FRAMES_PER_STEP, FULL, PAPER, paper_scores, summary
from ebql.paper.table import Row, Table

TABLE_1_COLUMNS = (
    "game",
    "agent",
    "source",
    "score",
    "low",
    "high",
    "human_normalized",
    "relative_bias",
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


def figure_6_table(curves: Iterable[NormalizedCurve]) -> Table:
    """Return one row for each point of our curves, then the paper's final scores on the same games."""
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
        if curve.agent in AGENTS:
            rows.append(_paper_point(curve.agent, curve.games))
    rows += [_paper_point(agent, FULL.games) for agent in AGENTS]
    return Table(columns, tuple(dict.fromkeys(rows)))


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
        "" if cell.relative_bias is None else cell.relative_bias,
        *(cell.seeds, *cell.steps, FRAMES_PER_STEP * cell.steps[1], cell.preset, " ".join(cell.departures)),
    )


def _paper_point(agent: str, games: Sequence[str]) -> Row:
    scores = summary(paper_scores(agent, games))
    about = (agent, "paper", " ".join(games), FULL.seeds, FULL.steps, FRAMES_PER_STEP * FULL.steps)
    return (*about, scores.mean, scores.median, "", "")
