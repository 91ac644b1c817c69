"""Write the tables of docs/algorithms.md about tabular methods from the CSV files of `ebql family`.

    python results/family/tables.py results/family docs/algorithms.md

Each table replaces what stands between its two comments, such as `<!-- arms -->` and `<!-- end of arms -->`.
"""

import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from ebql.paper.family.maps import Standing, dominated
from ebql.runs import write_text

Rows = list[dict[str, str]]

REGIMES = {"ε = 1": "ε = 1, α = 1/n^0.8", "ε = 0.1": "ε = 0.1, α = 1/n^0.8"}
ARMS = ("8", "32")
SPLIT = "EBQL 6"


def rows_of(path: Path) -> Rows:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def arms_table(rows: Rows) -> str:
    """Return the final bias with 8 and 32 arms, from over- to underestimation with random behaviour."""
    bias = {(row["agent"], row["regime"], row["arms"]): float(row["bias"]) for row in rows}
    agents = list(dict.fromkeys(row["agent"] for row in rows))
    cells = {
        agent: [bias[agent, regime, arms] for regime in REGIMES.values() for arms in ARMS] for agent in agents
    }
    header = ["method", *(f"{name}: {arms} arms" for name in REGIMES for arms in ARMS)]
    ranked = sorted(agents, key=lambda agent: -cells[agent][0])
    return markdown(header, [[agent, *map(signed, cells[agent])] for agent in ranked])


def standings_table(rows: Rows, margins: Rows) -> str:
    """Return means over regimes on both chains, and the regimes in which a method wins or another is better.

    A method wins a regime of the Meta-Chain if it chooses better than both Q- and double Q-learning.
    """
    names = ("rate", "rate_interval", "bias_max", "bias_max_interval")
    standings = [
        Standing(row["world"], row["regime"], row["agent"], *(float(row[name]) for name in names))
        for row in rows
    ]
    counts, worlds = dominated(standings), list(dict.fromkeys(row.world for row in standings))
    regimes = len({(row.world, row.regime) for row in standings})
    played = len({row["regime"] for row in margins})
    ahead = dict.fromkeys((row["agent"] for row in margins), 0)
    for row in margins:
        ahead[row["agent"]] += float(row["margin"]) > float(row["interval"])
    lines = []
    for agent in counts:
        mine = [[row for row in standings if (row.agent, row.world) == (agent, world)] for world in worlds]
        numbers = [(mean(row.rate for row in each), mean(row.bias for row in each)) for each in mine]
        lines.append([agent, numbers, counts[agent]])
    lines.sort(key=lambda line: -line[1][0][0])
    header = ["method", *(f"{world}: {name}" for world in worlds for name in ("rate", "bias"))]
    cells = [
        [
            agent,
            *(text for rate, bias in numbers for text in (f"{rate:.3f}", signed(bias, 3))),
            str(ahead.get(agent, "–")),
            str(count),
        ]
        for agent, numbers, count in lines
    ]
    return markdown([*header, f"beats both, of {played}", f"another is better, of {regimes}"], cells)


def splits_table(rows: Rows) -> str:
    """Return rate and squared error of each split of K = 6 members, means over regimes, by chain."""
    agents = [agent for agent in dict.fromkeys(row["agent"] for row in rows) if agent.startswith(f"{SPLIT} ")]
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    header = ["selectors", *(f"{world}: {name}" for world in worlds for name in ("rate", "squared error"))]
    lines = []
    for agent in (SPLIT, *agents):
        mine = [[row for row in rows if (row["agent"], row["world"]) == (agent, world)] for world in worlds]
        means = [
            mean(float(row[name]) for row in each) for each in mine for name in ("rate", "squared_error")
        ]
        selectors = agent.removeprefix(SPLIT).removeprefix(" split").strip() or "1"
        lines.append([selectors, *(f"{number:.3f}" for number in means)])
    return markdown(header, sorted(lines))


def signed(number: float, digits: int = 2) -> str:
    """Return a number with its sign, a true minus."""
    return f"{number:+.{digits}f}".replace("-", "−")


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def main() -> None:
    """Write all tables."""
    folder, page = Path(sys.argv[1]), Path(sys.argv[2])
    text = page.read_text(encoding="utf-8")
    for name, table in {
        "arms": arms_table(rows_of(folder / "arms.csv")),
        "standings": standings_table(rows_of(folder / "standings.csv"), rows_of(folder / "regimes.csv")),
        "splits": splits_table(rows_of(folder / "splits.csv")),
    }.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        between = re.compile(f"{begin}.*{end}", re.DOTALL)
        if not between.search(text):
            sys.exit(f"{page} has no comments {begin} and {end}.")
        text = between.sub(lambda _, new=f"{begin}\n{table}\n{end}": new, text)
    write_text(page, text)


if __name__ == "__main__":
    main()
