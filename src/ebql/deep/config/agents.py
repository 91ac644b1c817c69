"""The options of each agent: those of the paper, Rainbow, and related algorithms for comparison.

Agents differ in their bootstrap rule, in the data that members learn from, or in exploration. Everything else
is the same, so comparing two agents changes one word. `docs/algorithms.md` has the equations.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeVar

from ebql.deep.config.base import AgentConfig, Ensemble, EnsembleConfig
from ebql.deep.config.checks import not_negative, positive
from ebql.errors import InputError, unknown_name

CONFIGS: dict[str, type[AgentConfig]] = {}
"""The options of every agent, by the agent's name on the command line."""

C = TypeVar("C", bound=type[AgentConfig])


def registered(config: C) -> C:
    """Register an agent under its name, for Python, the command line and studies."""
    CONFIGS[config.name] = config
    return config


@registered
@dataclass(frozen=True, kw_only=True)
class DQNConfig(AgentConfig):
    """Q-learning with one network: the target network's maximum. Overestimates."""

    name: ClassVar[str] = "dqn"
    rule: ClassVar[str] = "q-learning"


@registered
@dataclass(frozen=True, kw_only=True)
class DoubleDQNConfig(AgentConfig):
    """Double DQN: the online network selects, its target copy evaluates. Overestimates less."""

    name: ClassVar[str] = "double-dqn"
    rule: ClassVar[str] = "double-q"


@registered
@dataclass(frozen=True, kw_only=True)
class EBQLConfig(EnsembleConfig):
    """Ensemble Bootstrapped Q-Learning: one member selects, the others evaluate. Bias of either sign."""

    name: ClassVar[str] = "ebql"
    rule: ClassVar[str] = "ensemble-bootstrap"

    split: int | Literal["adaptive"] = 1
    """Members that select: 1 as in the paper, another number, or adaptive to the members' spread."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        if self.split == "adaptive":
            if self.ensemble_size < 3:
                raise InputError(
                    f"split adaptive needs an ensemble-size of at least 3, not {self.ensemble_size}."
                )
        elif not 1 <= self.split < max(self.ensemble_size, 2):
            raise InputError(
                f"split {self.split} does not fit ensemble-size {self.ensemble_size}: "
                "at least one member must select and at least one must evaluate."
            )
        return self

    def bootstrap_rule(self) -> str:
        """Return the paper's rule, or the rule for another split of the members."""
        return self.rule if self.split == 1 else "split"


@registered
@dataclass(frozen=True, kw_only=True)
class RainbowConfig(EBQLConfig):
    """Rainbow: double DQN with priorities, dueling, noisy layers, three-step returns and distributions."""

    name: ClassVar[str] = "rainbow"
    rule: ClassVar[str] = "double-q"
    variant: ClassVar[str | None] = "rainbow"
    least_members: ClassVar[int] = 1

    ensemble_size: int = 1
    """Number of members, K; from 2 on, one selects and the others evaluate, as in EBQL."""
    n_step: int = 3
    """Rewards summed before bootstrapping; 3 is Rainbow's."""
    prioritized: bool = True
    """Sample transitions by their last error (prioritised replay, Schaul et al., 2016), not uniformly."""
    dueling: bool = True
    """Split the network into a state-value and an advantage stream (Wang et al., 2016)."""
    noisy: bool = True
    """Explore with learnt noise on the weights of the dense layers (Fortunato et al., 2018)."""
    atoms: int | None = 51
    """Learn a distribution of returns over this many atoms, 51 as in C51; None learns mean values."""
    epsilon_start: float = 0.0
    """Initial probability ε of a random action; Rainbow explores by its noise."""
    epsilon_end: float = 0.0
    """Final probability ε of a random action."""

    def bootstrap_rule(self) -> str:
        """Return double Q-learning's rule for a single network, EBQL's for more."""
        if self.ensemble_size == 1:
            return self.rule
        return "ensemble-bootstrap" if self.split == 1 else "split"


@registered
@dataclass(frozen=True, kw_only=True)
class RainbowEBQLConfig(RainbowConfig):
    """Rainbow with EBQL's members: one selects, the mean distribution of the others is the target."""

    name: ClassVar[str] = "rainbow-ebql"
    least_members: ClassVar[int] = 2

    ensemble_size: int = 5
    """Number of members, K."""


@registered
@dataclass(frozen=True, kw_only=True)
class QRDQNConfig(AgentConfig):
    """QR-DQN: DQN that learns quantiles of the return and maximises their mean. Overestimates."""

    name: ClassVar[str] = "qr-dqn"
    rule: ClassVar[str] = "q-learning"

    quantiles: int | None = 200
    """Learn this many quantiles of the return; 200 as in its paper."""


@registered
@dataclass(frozen=True, kw_only=True)
class IQNConfig(AgentConfig):
    """IQN: DQN that learns quantiles of the return as a function of their fraction. Overestimates."""

    name: ClassVar[str] = "iqn"
    rule: ClassVar[str] = "q-learning"

    implicit_quantiles: int | None = 64
    """Learn quantiles at this many random fractions per update; N = 64 as in its paper."""


@registered
@dataclass(frozen=True, kw_only=True)
class AveragedDQNConfig(AgentConfig):
    """Averaged-DQN: the maximum of the mean of past target networks. Overestimates less than DQN."""

    name: ClassVar[str] = "averaged-dqn"
    rule: ClassVar[str] = "mean-maximum"

    snapshots: int = 10
    """Past target networks that are averaged; 10 as in its paper."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        positive(self, "snapshots")
        if self.target_rate != 1:
            raise InputError("target-rate must be 1 with snapshots, which are whole copies of the network.")
        return self

    def ensemble(self) -> Ensemble:
        """Return a single network whose target averages its last copies."""
        return Ensemble(snapshots=self.snapshots)


@registered
@dataclass(frozen=True, kw_only=True)
class EnsembleDQNConfig(EnsembleConfig):
    """Ensemble-DQN: the maximum of the members' mean. Overestimates less than DQN."""

    name: ClassVar[str] = "ensemble-dqn"
    rule: ClassVar[str] = "mean-maximum"


@registered
@dataclass(frozen=True, kw_only=True)
class MaxminDQNConfig(EnsembleConfig):
    """Maxmin DQN: the maximum of the members' minimum. From over- to underestimation as K grows."""

    name: ClassVar[str] = "maxmin-dqn"
    rule: ClassVar[str] = "maxmin"

    ensemble_size: int = 4
    """Number of members, K; the larger, the lower the estimate."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "epsilon"
    """Act ε-greedily on the members' minimum (epsilon), mean + spread (ucb) or one per episode (thompson)."""

    def ensemble(self) -> Ensemble:
        """Return members that act on their minimum."""
        return super().ensemble()._replace(pessimistic=True)


@registered
@dataclass(frozen=True, kw_only=True)
class WeightedDoubleDQNConfig(EnsembleConfig):
    """Weighted double DQN: one member selects; a weighted mean of it and the others evaluates."""

    name: ClassVar[str] = "weighted-double-dqn"
    rule: ClassVar[str] = "weighted-double"

    ensemble_size: int = 2
    """Number of members, K; 2 as in its paper. With 3 or more, the mean of the others evaluates."""
    c: float = 1.0
    """Weight between Q-learning (0) and double Q-learning (∞), on the scale of the gaps between actions."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        positive(self, "c")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class ClippedDoubleDQNConfig(EnsembleConfig):
    """Clipped double DQN: one member selects, the member with the lowest value evaluates."""

    name: ClassVar[str] = "clipped-double-dqn"
    rule: ClassVar[str] = "clipped-double"

    ensemble_size: int = 2
    """Number of members, K; 2 as in its paper."""


@registered
@dataclass(frozen=True, kw_only=True)
class CrossDQNConfig(EnsembleConfig):
    """Cross DQN: one member selects, another random member evaluates."""

    name: ClassVar[str] = "cross-dqn"
    rule: ClassVar[str] = "cross"


@registered
@dataclass(frozen=True, kw_only=True)
class REDQConfig(EnsembleConfig):
    """REDQ's target for discrete actions: the maximum of the minimum of a few random members."""

    name: ClassVar[str] = "redq"
    rule: ClassVar[str] = "subset-minimum"

    ensemble_size: int = 10
    """Number of members, K; 10 as in its paper."""
    subset_size: int = 2
    """Random members that form the minimum at each update; 2 as in its paper."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        positive(self, "subset_size")
        if self.subset_size > self.ensemble_size:
            raise InputError(
                f"subset-size ({self.subset_size}) must not exceed ensemble-size ({self.ensemble_size})."
            )
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class BootstrappedDQNConfig(EnsembleConfig):
    """Bootstrapped DQN: members learn on their own shares of the data; one acts per episode."""

    name: ClassVar[str] = "bootstrapped-dqn"
    rule: ClassVar[str] = "double-q"

    ensemble_size: int = 10
    """Number of members, K; 10 as in its paper."""
    data: Literal["shared", "masked", "independent"] = "masked"
    """Minibatches: one with a mask per transition, one shared by all members, or one each."""
    torso_gradient: Literal["sum", "mean"] = "mean"
    """Gradient of the shared torso: the members' mean, as in its paper, or their sum."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "thompson"
    """Act ε-greedily on one member per episode (thompson), the mean (epsilon) or mean + spread (ucb)."""


@registered
@dataclass(frozen=True, kw_only=True)
class RandomisedPriorsConfig(BootstrappedDQNConfig):
    """Randomised priors: Bootstrapped DQN with a fixed random network added to each member."""

    name: ClassVar[str] = "randomised-priors"

    data: Literal["shared", "masked", "independent"] = "shared"
    """Minibatches: one shared (priors keep members apart), one with a mask per transition, or one each."""
    prior_scale: float = 1.0
    """Scale of the fixed random network, whose outputs are about as large as the initial values."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        positive(self, "prior_scale")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class SunriseConfig(EnsembleConfig):
    """SUNRISE: double DQN members that learn less where they disagree and act on an upper bound."""

    name: ClassVar[str] = "sunrise"
    rule: ClassVar[str] = "sunrise"

    data: Literal["shared", "masked", "independent"] = "masked"
    """Minibatches: one with a mask per transition, one shared by all members, or one each."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "ucb"
    """Act ε-greedily on the members' mean + spread (ucb), mean (epsilon) or one per episode (thompson)."""
    temperature: float = 10.0
    """How fast a transition's weight falls from 1 to 0.5 as the members' spread grows."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        not_negative(self, "temperature")
        return self


def config_type(agent: str) -> type[AgentConfig]:
    """Return the config of the agent with this name; for an unknown one, suggest the nearest name."""
    if agent not in CONFIGS:
        raise InputError(
            f"{unknown_name('agent', agent, CONFIGS)} If it is your own, register it first: "
            "ebql.register(MyAgent), or --import its module."
        )
    return CONFIGS[agent]
