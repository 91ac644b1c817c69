"""The paper's claims and our verdicts, from the kept ledger."""

import json
from pathlib import Path

from manual.tables import table

_INTRODUCTION = """# The paper's claims, one by one

`ebql reproduce` measures each claim of sections 4 to 7 and gives a verdict. This table is made from the
[kept ledger](../../results/paper/ledger.json): {seeds} seeds and {episodes:,} episodes on the chains. A claim
is *mixed* if it holds in some regimes of exploration and step size and not in others; the paper does not
specify them. It is *open* if no interval excludes the threshold.
"""


def page(ledger: Path) -> str:
    """Return the page of all claims."""
    kept = json.loads(ledger.read_text(encoding="utf-8"))
    rows = [
        [claim["statement"], claim["source"], f"**{claim['verdict']}**", _evidence(claim)]
        for claim in kept["claims"]
    ]
    counts = {verdict: sum(claim["verdict"] == verdict for claim in kept["claims"]) for verdict in _VERDICTS}
    told = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    head = ["claim", "where", "verdict", "evidence"]
    return f"{_INTRODUCTION.format(**kept)}\n{len(rows)} claims: {told}.\n\n{table(head, rows)}\n"


_VERDICTS = ("holds", "mixed", "fails", "open")


def _evidence(claim: dict[str, object]) -> str:
    """Return in how many of its measurements the claim holds, and what the ledger notes about it."""
    evidence = claim["evidence"]
    assert isinstance(evidence, list)
    holds = sum(part["verdict"] == "holds" for part in evidence)
    return f"{holds} of {len(evidence)} hold. {claim['note']}".strip()
