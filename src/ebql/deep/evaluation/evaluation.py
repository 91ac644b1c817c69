"""The results of an evaluation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from ebql.deep.evaluation.bias import Bias
from ebql.deep.evaluation.rollout import Trace
from ebql.runs.metric_names import (
    BIAS_PREFIX,
    EVALUATION_EPISODES,
    EVALUATION_LENGTH,
    EVALUATION_RETURN,
    EVALUATION_RETURN_STD,
)


@dataclass(frozen=True)
class Evaluation:
    """Episodes played with the current policy.

    >>> from ebql import DQN
    >>> evaluation = DQN("CartPole-v1", seed=0).evaluate(episodes=3)
    >>> len(evaluation.returns), evaluation.mean == sum(evaluation.returns) / 3
    (3, True)
    """

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
        bias = {f"{BIAS_PREFIX}{name}": value for name, value in asdict(self.bias).items()}
        return {
            EVALUATION_RETURN: self.mean,
            EVALUATION_RETURN_STD: float(np.std(self.returns)),
            EVALUATION_LENGTH: float(np.mean(self.lengths)),
            EVALUATION_EPISODES: len(self.returns),
            **bias,
        }
