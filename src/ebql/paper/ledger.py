"""The ledger: every claim of the paper on this ground, what we measured, and whether it holds.

A claim says that some quantity lies above or below a threshold. Evidence for it is a value with an
interval: the claim holds where the whole interval lies on the claimed side, fails where all of it lies on
the other, and is open where the threshold lies within. Exact evidence has an interval without width.
Intervals are at 95% each and not corrected for being many: of a hundred open questions some will seem
settled by chance.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ebql.estimators.intervals import over_seeds


class Verdict(StrEnum):
    """What the evidence says; `MIXED` also covers evidence that can't tell."""

    HOLDS = "holds"
    FAILS = "fails"
    MIXED = "mixed"


Side = Literal[">", "<"]


@dataclass(frozen=True)
class Evidence:
    """One measured quantity, and the side of a threshold on which the claim puts it."""

    regime: str
    quantity: str
    value: float
    low: float
    high: float
    claimed: Side = ">"
    threshold: float = 0.0

    @property
    def support(self) -> tuple[float, float]:
        """How far the ends of the interval lie on the claimed side, the less supportive first."""
        if self.claimed == ">":
            return self.low - self.threshold, self.high - self.threshold
        return self.threshold - self.high, self.threshold - self.low

    @property
    def verdict(self) -> Verdict:
        """Holds if the whole interval lies on the claimed side, fails if on the other, else mixed."""
        least, most = self.support
        if least > 0:
            return Verdict.HOLDS
        # A value known exactly that lies on the threshold does not lie beyond it.
        return Verdict.FAILS if most < 0 or least == most else Verdict.MIXED


@dataclass(frozen=True)
class Claim:
    """A statement of the paper with all the evidence we have for and against it."""

    name: str
    source: str
    statement: str
    evidence: tuple[Evidence, ...]
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Holds if all evidence does; fails if none does and some fails; else mixed."""
        verdicts = {evidence.verdict for evidence in self.evidence}
        if verdicts == {Verdict.HOLDS}:
            return Verdict.HOLDS
        refuted = Verdict.FAILS in verdicts and Verdict.HOLDS not in verdicts
        return Verdict.FAILS if refuted else Verdict.MIXED

    @property
    def summary(self) -> str:
        """In how many of the regimes the claim holds, fails, or can't be told."""
        counts = [sum(e.verdict is v for e in self.evidence) for v in Verdict]
        if len(self.evidence) == 1:
            return str(self.verdict)
        return f"holds {counts[0]}, fails {counts[1]}, open {counts[2]} of {len(self.evidence)}"

    def as_json(self) -> dict[str, Any]:
        """The claim as plain JSON values."""
        return {
            "name": self.name,
            "source": self.source,
            "statement": self.statement,
            "verdict": self.verdict,
            "summary": self.summary,
            "note": self.note,
            "evidence": [{**asdict(e), "verdict": e.verdict} for e in self.evidence],
        }


def exactly(
    quantity: str, value: float, claimed: Side = ">", threshold: float = 0.0, *, regime: str = "exact"
) -> Evidence:
    """Evidence by computation, without chance."""
    value = float(value)
    return Evidence(regime, quantity, value, value, value, claimed, threshold)


def by_seeds(
    regime: str, quantity: str, per_seed: NDArray[np.float64], claimed: Side = ">", threshold: float = 0.0
) -> Evidence:
    """Evidence from one number a seed, with the 95% interval of their mean."""
    estimate = over_seeds(per_seed)
    mean, half = float(estimate.mean), float(estimate.half_width)
    return Evidence(regime, quantity, mean, mean - half, mean + half, claimed, threshold)


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """The evidence that says least for the claim: what a claim about all of them rests on."""
    order = (Verdict.FAILS, Verdict.MIXED, Verdict.HOLDS)
    return min(evidence, key=lambda e: (order.index(e.verdict), e.support))
