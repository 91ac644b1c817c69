"""What an evaluation found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

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
    """What the members expected on the way of the greedy policy, against what it earned."""

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns))

    def to_json(self) -> dict[str, Any]:
        """Return what a run records of an evaluation."""
        bias = {f"bias/{name}": value for name, value in asdict(self.bias).items()}
        return {
            "evaluation/return": self.mean,
            "evaluation/return_std": float(np.std(self.returns)),
            "evaluation/length": float(np.mean(self.lengths)),
            "evaluation/episodes": len(self.returns),
            **bias,
        }


def evaluated(scored: Sequence[Trace], bias: Bias) -> Evaluation:
    """Return the scores of played episodes, beside the bias of the greedy policy."""
    returns = tuple(trace.score for trace in scored)
    return Evaluation(returns, tuple(trace.length for trace in scored), bias)
