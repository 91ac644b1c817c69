"""The catalogue of agents: equation, source, the sign of the bias, and what was measured.

Equations and measurements are read from `docs/algorithms.md`, the one place that holds them.
"""

import re
from typing import Any

from ebql import tabular
from ebql.catalogue import FAMILY, Method
from ebql.deep.config.agents import CONFIGS
from ebql.lab.shipped import shipped

_ENTRY = re.compile(
    r"^### (?P<name>[^·\n]+?)(?: ·[^\n]*)?\n(?P<equation>(?:    [^\n]*\n)+)(?P<text>.*?)(?=^#|\Z)",
    re.M | re.S,
)
_ARMS, _NETWORKS = "| method | ε = 1: 8 arms", "| agent | bias / return"
_ORDER = {"over": 0, "either": 1, "under": 2}


def catalogue() -> dict[str, Any]:
    """Return all methods from over- to underestimation, as measured where that is known."""
    text = shipped("algorithms.md")
    entries = {match["name"]: match for match in _ENTRY.finditer(text)}
    arms, networks = _table(text, _ARMS), _table(text, _NETWORKS)
    rows = [_row(method, entries.get(method.name), arms, networks) for method in FAMILY]
    # The dots show eight arms, with ε = 1 and with ε = 0.1.
    shown = [row["arms"][0]["numbers"][place] for row in rows if row["arms"] for place in (0, 2)]
    rows.sort(key=lambda row: (_ORDER[row["bias"]], -row["arms"][0]["numbers"][0] if row["arms"] else 0.0))
    return {"methods": rows, "low": min(shown), "high": max(shown)}


def _row(
    method: Method,
    entry: re.Match[str] | None,
    arms: dict[str, list[float]],
    networks: dict[str, list[float]],
) -> dict[str, Any]:
    table = getattr(tabular, method.tabular)().label if method.tabular else None
    network = CONFIGS[method.deep].label() if method.deep in CONFIGS else None
    return {
        "name": method.name,
        "line": method.line,
        "bias": method.bias,
        "deep_bias": method.deep_bias,
        "paper": method.paper,
        "tabular": method.tabular,
        "deep": method.deep,
        "equation": [line.strip() for line in entry["equation"].splitlines()] if entry else [],
        "text": _unmarked(entry["text"]) if entry else "",
        "arms": [{"name": name, "numbers": numbers} for name, numbers in arms.items() if name == table],
        "networks": [
            {"name": name, "numbers": numbers}
            for name, numbers in networks.items()
            if name.partition(",")[0] == network
        ],
    }


def _table(text: str, head: str) -> dict[str, list[float]]:
    """Return the rows of a table of numbers, by the name in their first cell."""
    rows = {}
    _, _, after = text.partition(head)
    for line in after.split("\n")[2:]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = [float(cell.replace("−", "-")) for cell in cells]
    return rows


def _unmarked(markdown: str) -> str:
    """Return the first paragraph without its marks."""
    paragraph = " ".join(markdown.strip().partition("\n\n")[0].split())
    linked = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", paragraph)
    return re.sub(r"[*`]", "", linked)
