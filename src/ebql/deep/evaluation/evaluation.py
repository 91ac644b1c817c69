"""The results of an evaluation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from ebql.deep.evaluation.bias import Bias
from ebql.deep.evaluation.rollout import Trace


@dataclass(frozen=True)
class Evaluation:
    """Episodes played with the current policy."""

    returns: tuple[float, ...]
    """The undiscounted, unclipped return of each episode."""
    lengths: tuple[int, ...]
    """The agent steps of each episode."""
    bias: Bias
    """The estimation bias of the greedy policy."""

    @classmethod
    def of(cls, scored: Sequence[Trace], bias: Bias) -> Self:
        """Return the scores of these episodes, together with the bias of the greedy policy."""
        return cls(tuple(trace.score for trace in scored), tuple(trace.length for trace in scored), bias)

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns))

    def to_json(self) -> dict[str, Any]:
        """Return the metrics that a run records for an evaluation."""
        bias = {f"bias/{name}": value for name, value in asdict(self.bias).items()}
        return {
            "evaluation/return": self.mean,
            "evaluation/return_std": float(np.std(self.returns)),
            "evaluation/length": float(np.mean(self.lengths)),
            "evaluation/episodes": len(self.returns),
            **bias,
        }
