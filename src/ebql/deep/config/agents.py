"""The options of every agent: those of the paper, Rainbow, and the relatives they are compared with.

A relative differs in its bootstrap rule, in which members learn from what, or in how it explores. Everything
else is the same, so that a comparison changes one word. `docs/algorithms.md` has the equations.
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
    """Make an agent known by its name: to Python, the command line and studies."""
    CONFIGS[config.name] = config
    return config


@registered
@dataclass(frozen=True, kw_only=True)
class DQNConfig(AgentConfig):
    """Q-learning with one network: the target's own maximum. Overestimates."""

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
    """Ensemble Bootstrapped Q-Learning: a member selects, the others evaluate. Between the two biases."""

    name: ClassVar[str] = "ebql"
    rule: ClassVar[str] = "ensemble-bootstrap"

    split: int | Literal["adaptive"] = 1
    """How many members select: 1 as the paper, n, or adaptive, which looks at the members' spread."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        if self.split == "adaptive":
            if self.ensemble_size < 3:
                raise InputError(
                    f"split adaptive and ensemble-size {self.ensemble_size} clash: it needs 3 at least."
                )
        elif not 1 <= self.split < max(self.ensemble_size, 2):
            raise InputError(
                f"split {self.split} and ensemble-size {self.ensemble_size} clash: "
                "some must select, and some must be left to evaluate."
            )
        return self

    def bootstrap_rule(self) -> str:
        """Return the paper's rule, or the one that splits the members otherwise."""
        return self.rule if self.split == 1 else "split"


@registered
@dataclass(frozen=True, kw_only=True)
class RainbowConfig(EBQLConfig):
    """Rainbow: double DQN with priorities, dueling, noise, three-step returns and distributions."""

    name: ClassVar[str] = "rainbow"
    rule: ClassVar[str] = "double-q"
    variant: ClassVar[str | None] = "rainbow"
    least_members: ClassVar[int] = 1

    ensemble_size: int = 1
    """K, the number of members; from 2 on, one selects and the others evaluate, as in EBQL."""
    n_step: int = 3
    """Rewards summed before bootstrapping; 3 is Rainbow's."""
    prioritized: bool = True
    """Draw transitions by how wrong the members were about them (Schaul et al., 2016), not uniformly."""
    dueling: bool = True
    """Two streams, one for a state's value and one for the actions' advantages (Wang et al., 2016)."""
    noisy: bool = True
    """UpdateResult noise on the weights of dense layers, for exploration (Fortunato et al., 2018)."""
    atoms: int | None = 51
    """Returns that a distribution is learnt over (C51, Bellemare et al., 2017); None: values only."""
    epsilon_start: float = 0.0
    """The first probability of a random action; the noise explores."""
    epsilon_end: float = 0.0
    """The last probability of a random action."""

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
    """K, the number of members."""


@registered
@dataclass(frozen=True, kw_only=True)
class AveragedDQNConfig(AgentConfig):
    """Averaged-DQN: the maximum of the mean of the network's last copies. Says less than DQN."""

    name: ClassVar[str] = "averaged-dqn"
    rule: ClassVar[str] = "mean-maximum"

    snapshots: int = 10
    """How many of the network's last copies are averaged; the paper's 10."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        positive(self, "snapshots")
        return self

    def ensemble(self) -> Ensemble:
        """Return a single network that learns from its last copies."""
        return Ensemble(snapshots=self.snapshots)


@registered
@dataclass(frozen=True, kw_only=True)
class EnsembleDQNConfig(EnsembleConfig):
    """Ensemble-DQN: the maximum of the members' mean. Overestimates less."""

    name: ClassVar[str] = "ensemble-dqn"
    rule: ClassVar[str] = "mean-maximum"


@registered
@dataclass(frozen=True, kw_only=True)
class MaxminDQNConfig(EnsembleConfig):
    """Maxmin DQN: the maximum of the members' minimum. From over- to underestimation as K grows."""

    name: ClassVar[str] = "maxmin-dqn"
    rule: ClassVar[str] = "maxmin"

    ensemble_size: int = 4
    """K, the number of members: the more, the lower the estimate."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "epsilon"
    """Greedy on the members' minimum, on their mean + ucb-width spreads, or on one an episode; with ε."""

    def ensemble(self) -> Ensemble:
        """Return members that act on what all of them grant."""
        return super().ensemble()._replace(pessimistic=True)


@registered
@dataclass(frozen=True, kw_only=True)
class WeightedDoubleDQNConfig(EnsembleConfig):
    """Weighted double DQN: a member selects; it and the others evaluate, weighted by how much it matters."""

    name: ClassVar[str] = "weighted-double-dqn"
    rule: ClassVar[str] = "weighted-double"

    ensemble_size: int = 2
    """K, the number of members; 2 as the paper, from 3 on the others evaluate by their mean."""
    c: float = 1.0
    """From Q-learning (0) to double Q-learning (∞), on the scale of the gaps between actions' values."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        positive(self, "c")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class ClippedDoubleDQNConfig(EnsembleConfig):
    """Clipped double DQN: a member selects, the one that says least evaluates."""

    name: ClassVar[str] = "clipped-double-dqn"
    rule: ClassVar[str] = "clipped-double"

    ensemble_size: int = 2
    """K, the number of members; 2 as the paper."""


@registered
@dataclass(frozen=True, kw_only=True)
class CrossDQNConfig(EnsembleConfig):
    """Cross DQN: a member selects, one random other evaluates."""

    name: ClassVar[str] = "cross-dqn"
    rule: ClassVar[str] = "cross"


@registered
@dataclass(frozen=True, kw_only=True)
class REDQConfig(EnsembleConfig):
    """REDQ's target for discrete actions: the maximum of the minimum of a few members, drawn anew."""

    name: ClassVar[str] = "redq"
    rule: ClassVar[str] = "subset-minimum"

    ensemble_size: int = 10
    """K, the number of members; 10 as the paper."""
    subset_size: int = 2
    """How many members are asked at an update; 2 as the paper."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        positive(self, "subset_size")
        if self.subset_size > self.ensemble_size:
            raise InputError(
                f"subset-size {self.subset_size} and ensemble-size {self.ensemble_size} clash: "
                "a subset is no larger."
            )
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class BootstrappedDQNConfig(EnsembleConfig):
    """Bootstrapped DQN: members learn apart, each from its share of the data; one acts an episode."""

    name: ClassVar[str] = "bootstrapped-dqn"
    rule: ClassVar[str] = "double-q"

    ensemble_size: int = 10
    """K, the number of members; 10 as the paper."""
    data: Literal["shared", "masked", "independent"] = "masked"
    """Masks drawn once a transition, one minibatch for all members, or one batch each."""
    torso_gradient: Literal["sum", "mean"] = "mean"
    """The shared torso's gradient over members: their mean, as the paper, or their sum."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "thompson"
    """Greedy on one member an episode, on the members' mean, or on their mean + ucb-width spreads; with ε."""


@registered
@dataclass(frozen=True, kw_only=True)
class RandomisedPriorsConfig(BootstrappedDQNConfig):
    """Randomised priors: Bootstrapped DQN with a fixed random network added to each member."""

    name: ClassVar[str] = "randomised-priors"

    data: Literal["shared", "masked", "independent"] = "shared"
    """One minibatch for all members, whom their priors keep apart, masks, or one batch each."""
    prior_scale: float = 1.0
    """The fixed random network is added this many times; its outputs are about as large as first values."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        positive(self, "prior_scale")
        return self


@registered
@dataclass(frozen=True, kw_only=True)
class SunriseConfig(EnsembleConfig):
    """SUNRISE: double DQN members that learn less where they disagree, and act on an upper bound."""

    name: ClassVar[str] = "sunrise"
    rule: ClassVar[str] = "sunrise"

    data: Literal["shared", "masked", "independent"] = "masked"
    """Masks drawn once a transition, one minibatch for all members, or one batch each."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "ucb"
    """Greedy on the members' mean + ucb-width spreads, on their mean, or on one member an episode; with ε."""
    temperature: float = 10.0
    """How fast a transition's weight falls, from 1 to 0.5, as the members' spread grows."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        not_negative(self, "temperature")
        return self


def config_type(agent: str) -> type[AgentConfig]:
    """Return the config of the agent with this name; refuse an unknown one with the nearest name."""
    if agent not in CONFIGS:
        raise unknown_name("agent", agent, CONFIGS)
    return CONFIGS[agent]
