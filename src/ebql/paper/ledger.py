"""The ledger: claims of the paper, the evidence that we measured, and whether each claim holds.

A claim states that some quantity is above or below a threshold. Its evidence is a value with a 95% interval.
The claim holds if the whole interval is on the claimed side, fails if all of it is on the other side, and is
open if the interval contains the threshold. The interval of an exact value has no width. Intervals are not
adjusted for multiple comparisons: among a hundred claims, a few verdicts will be due to chance.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ebql.estimators.intervals import over_seeds


class Verdict(StrEnum):
    """Whether the evidence supports a claim. `MIXED` is for claims alone, `OPEN` says that we cannot tell."""

    HOLDS = "holds"
    FAILS = "fails"
    MIXED = "mixed"
    OPEN = "open"


Side = Literal[">", "<"]


@dataclass(frozen=True)
class Evidence:
    """A measured quantity, and the side of the threshold on which the claim expects it."""

    regime: str
    quantity: str
    value: float
    low: float
    high: float
    claimed: Side = ">"
    threshold: float = 0.0

    @property
    def support(self) -> tuple[float, float]:
        """How far the ends of the interval are on the claimed side, the less supportive end first."""
        if self.claimed == ">":
            return self.low - self.threshold, self.high - self.threshold
        return self.threshold - self.high, self.threshold - self.low

    @property
    def verdict(self) -> Verdict:
        """Holds if the whole interval is on the claimed side, fails if on the other side, else open."""
        least, most = self.support
        if least > 0:
            return Verdict.HOLDS
        # An exact value equal to the threshold is not beyond it.
        return Verdict.FAILS if most < 0 or least == most else Verdict.OPEN


@dataclass(frozen=True)
class Claim:
    """A statement of the paper with all our evidence for and against it."""

    name: str
    source: str
    statement: str
    evidence: tuple[Evidence, ...]
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Holds or is open if all evidence is so; fails if some fails and none holds; else mixed."""
        verdicts = {evidence.verdict for evidence in self.evidence}
        if len(verdicts) == 1:
            return verdicts.pop()
        refuted = Verdict.FAILS in verdicts and Verdict.HOLDS not in verdicts
        return Verdict.FAILS if refuted else Verdict.MIXED

    @property
    def summary(self) -> str:
        """In how many regimes the claim holds, fails or is open."""
        if len(self.evidence) == 1:
            return str(self.verdict)
        counts = Counter(evidence.verdict for evidence in self.evidence)
        told = (f"{verdict} {counts[verdict]}" for verdict in (Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN))
        return f"{', '.join(told)} of {len(self.evidence)}"

    def as_json(self) -> dict[str, Any]:
        """Return the claim as JSON values."""
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
    """Return evidence from an exact computation."""
    value = float(value)
    return Evidence(regime, quantity, value, value, value, claimed, threshold)


def by_seeds(
    regime: str, quantity: str, per_seed: NDArray[np.float64], claimed: Side = ">", threshold: float = 0.0
) -> Evidence:
    """Return evidence from one number per seed: their mean with its 95% interval."""
    estimate = over_seeds(per_seed)
    mean, half = float(estimate.mean), float(estimate.half_width)
    return Evidence(regime, quantity, mean, mean - half, mean + half, claimed, threshold)


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """Return the least supportive evidence, which decides a claim about all of them."""
    order = (Verdict.FAILS, Verdict.OPEN, Verdict.HOLDS)
    return min(evidence, key=lambda e: (order.index(e.verdict), e.support))
