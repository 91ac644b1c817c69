"""What an evaluation found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ebql.deep.bias import Bias, measured_bias
from ebql.deep.config import AgentConfig
from ebql.deep.playing import Trace


@dataclass(frozen=True)
class Evaluation:
    """Episodes played with the current policy."""

    returns: tuple[float, ...]
    """The undiscounted, unclipped return of each episode."""
    lengths: tuple[int, ...]
    """The agent steps of each episode."""
    bias: Bias
    """What the members expected on the way against what was earned."""

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


def evaluated(traces: Sequence[Trace], config: AgentConfig) -> Evaluation:
    """Return the scores and the bias of played episodes."""
    bias = measured_bias(traces, config.discount, config.reward_clip)
    returns = tuple(trace.score for trace in traces)
    return Evaluation(returns, tuple(len(trace.rewards) for trace in traces), bias)
