"""What `ebql reproduce table1` adds for short runs: published scores, and the paper's claim about them."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from ebql.analysis.human_scores import PLAYERS
from ebql.paper.atari.published import GAMES, PUBLISHED, STEPS
from ebql.paper.atari.runs import Cell, cells_of
from ebql.paper.atari.scores import AGENTS, summary
from ebql.paper.ledger import Claim
from ebql.terminal.wording import short


def published_table(cells: Sequence[Cell]) -> Table:
    """Return the published scores on the games that all methods have, beside those of our agents."""
    title = f"Published scores after {short(STEPS)} agent steps, and ours"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("game")
    for heading in ("human", "random", *(own.method for own in PUBLISHED)):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent in AGENTS:
        table.add_column(f"ours\n{agent}", justify="right", style="cyan", no_wrap=True)
    ours = [{game: own.mean for game, own in cells_of(cells, agent).items()} for agent in AGENTS]
    columns: list[Mapping[str, float]] = [*(own.scores for own in PUBLISHED), *ours]
    for game in GAMES:
        scores = (f"{own[game]:.1f}" if game in own else "" for own in columns)
        table.add_row(game, *(f"{score:.1f}" for score in PLAYERS[game]), *scores)
    complete = [
        summary({game: own[game] for game in GAMES}) if own.keys() >= set(GAMES) else None for own in columns
    ]
    table.add_row()
    for name in ("mean", "median"):
        shares = ("" if own is None else f"{getattr(own, name):.1%}" for own in complete)
        table.add_row(name, "100%", "0%", *shares)
    return table


def sources() -> list[str]:
    """Return a line for each published method."""
    return [f"{own.method}: {own.source}." for own in PUBLISHED]


def verdict(claim: Claim) -> list[str]:
    """Return the claim with its evidence, a line each."""
    return [
        f"{claim.source}, {claim.name}: {claim.verdict}",
        *(
            f"  {found.quantity}: {found.value:.2f} [{found.low:.2f}, {found.high:.2f}], {found.regime}: "
            f"{found.verdict}"
            for found in claim.evidence
        ),
    ]
