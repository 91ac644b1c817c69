"""The options of methods that the paper does not know, most of them published after it.

They differ from the agents of `agents.py` in their bootstrap rule, or in the data that members learn from.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from ebql.deep.config.agents import REDQConfig, registered
from ebql.deep.config.base import AgentConfig, EnsembleConfig
from ebql.deep.config.checks import not_negative, positive
from ebql.errors import InputError


@registered
@dataclass(frozen=True, kw_only=True)
class WeightedDQNConfig(EnsembleConfig):
    """Weighted DQN: the members' mean over actions, weighted by the probability of being the best."""

    name: ClassVar[str] = "weighted-dqn"
    rule: ClassVar[str] = "weighted"


@registered
@dataclass(frozen=True, kw_only=True)
class TEDQNConfig(EnsembleConfig):
    """T-estimator: the mean of the actions that a two-sample test cannot tell from a member's best."""

    name: ClassVar[str] = "te-dqn"
    rule: ClassVar[str] = "t-estimator"

    alpha: float = 0.05
    """Level of the test: from the mean of all actions (near 0) to Q-learning's maximum (0.5)."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        if not 0 < self.alpha <= 0.5:
            raise InputError(f"alpha must be above 0 and at most 0.5, not {self.alpha}.")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class KEDQNConfig(EnsembleConfig):
    """K-estimator: a member's actions, weighted by a Gaussian kernel of the two-sample test's score."""

    name: ClassVar[str] = "ke-dqn"
    rule: ClassVar[str] = "k-estimator"

    scale: float = 1.0
    """Width of the kernel, in standard errors: near 0 it is Q-learning; a large one averages all actions."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        positive(self, "scale")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class OrderDQNConfig(EnsembleConfig):
    """Order DQN: the maximum of an order statistic of the members, from under- to overestimation."""

    name: ClassVar[str] = "order-dqn"
    rule: ClassVar[str] = "order"

    ensemble_size: int = 4
    """Number of members, K."""
    index: int = 2
    """Which of the members' values counts, from the smallest (1, Maxmin's) to the largest (K)."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        if not 1 <= self.index <= self.ensemble_size:
            raise InputError(
                f"index must lie between 1 and ensemble-size, {self.ensemble_size}, not {self.index}."
            )
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class AdaptiveOrderDQNConfig(EnsembleConfig):
    """Order DQN whose index rises from the lower quartile to the median as members agree."""

    name: ClassVar[str] = "adaptive-order-dqn"
    rule: ClassVar[str] = "adaptive-order"


@registered
@dataclass(frozen=True, kw_only=True)
class AdaEQConfig(REDQConfig):
    """AdaEQ: the maximum of the minimum of M random members; each evaluation adapts M to the error."""

    name: ClassVar[str] = "adaeq"
    rule: ClassVar[str] = "adaeq"

    subset_size: int = 4
    """Random members that form the minimum at each update, M, until the first evaluation."""
    tolerance: float = 0.4
    """Threshold on std(error) / |mean return| at evaluations: above it M rises, below it M falls."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        positive(self, "tolerance")
        if self.subset_size < 2:
            raise InputError(f"subset-size must be at least 2, not {self.subset_size}.")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class RobustDQNConfig(EnsembleConfig):
    """2RA: the maximum of the members' mean, lowered by the radius of a robust estimate."""

    name: ClassVar[str] = "robust-dqn"
    rule: ClassVar[str] = "robust-mean"

    rho: float = 0.01
    """Squared radius ρ: each bootstrap value is lowered by √ρ. It stays as it is during training."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        not_negative(self, "rho")
        if self.atoms is not None:
            raise InputError(
                "rho does not work with atoms, only with mean values or quantiles: leave one of them out."
            )
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class CandidateDQNConfig(EnsembleConfig):
    """Action-candidate clipped double DQN: the others name the actions that a member selects from."""

    name: ClassVar[str] = "candidate-dqn"
    rule: ClassVar[str] = "candidates"

    ensemble_size: int = 2
    """Number of members, K; 2 as in its paper, from 3 on the others' mean names and evaluates."""
    candidates: int = 2
    """Actions that the others name."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        positive(self, "candidates")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class SmoothedDQNConfig(AgentConfig):
    """Smoothed DQN: the maximum and, with a small weight, the mean of the other actions."""

    name: ClassVar[str] = "smoothed-dqn"
    rule: ClassVar[str] = "smoothed"

    smoothing: float = 0.1
    """Weight τ of all actions but the best. It stays as it is during training."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        if not 0 <= self.smoothing <= 1:
            raise InputError(f"smoothing must lie between 0 and 1, not {self.smoothing}.")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class MeanQConfig(EnsembleConfig):
    """MeanQ: the maximum of the members' mean; each member learns from minibatches of its own."""

    name: ClassVar[str] = "meanq"
    rule: ClassVar[str] = "mean-maximum"

    data: Literal["shared", "masked", "independent"] = "independent"
    """Minibatches: one for each member, as in its authors' code, one shared, or one with masks."""
    share_torso: bool = False
    """Share one torso among all members; its authors train K separate networks."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "ucb"
    """Act ε-greedily on the members' mean + spread (ucb), mean (epsilon) or one per episode (thompson)."""


@registered
@dataclass(frozen=True, kw_only=True)
class DeepDoubleQConfig(EnsembleConfig):
    """Deep double Q-learning: two networks; each selects for itself, and the other evaluates."""

    name: ClassVar[str] = "deep-double-q"
    rule: ClassVar[str] = "ensemble-bootstrap"

    ensemble_size: int = 2
    """Number of networks, always 2; with more it is ebql."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        if self.ensemble_size != 2:
            raise InputError(f"deep-double-q has 2 networks, not {self.ensemble_size}: use ebql for more.")
        return self
