"""One dataclass an agent: its options, their defaults and the reason for each.

The same object is the command line (its docstrings are the help), the JSON in a run folder and the
keyword arguments in Python. Nothing here imports torch. Steps are agent steps, summed over environments.
Defaults are small-problem defaults; `presets` hold those of each family of environments.
"""

import math
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ebql.errors import InputError, InputTypeError, unknown_name, whole_number

_TOO_LARGE = 2**63


class Ensemble(NamedTuple):
    """What a learner needs to know of its members; as it stands, a single network."""

    size: int = 1
    members: Literal["all", "cycle"] = "all"
    data: Literal["shared", "masked", "independent"] = "shared"
    mask_probability: float = 1.0
    torso_gradient: Literal["sum", "mean"] = "sum"
    share_torso: bool = True


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """The options that every agent has."""

    name: ClassVar[str]
    """What the command line calls the agent."""
    rule: ClassVar[str]
    """The agent's bootstrap rule, a key of `ebql.deep.targets.RULES`."""

    seed: int = 0
    """Settles everything random: two runs with one seed on one machine end with the same weights."""
    torso: Literal["auto", "mlp", "minatar", "nature", "small"] = "auto"
    """The network's eye: dense layers, MinAtar's convolution, Atari's three or two smaller ones; auto looks
    at the shape."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the dense layers, the convolutions not counted."""
    own_layers: int = 1
    """How many of the last hidden layers each member owns: 1, as the authors; 0 leaves linear read-outs."""
    discount: float = 0.99
    """γ, the worth of the next step's value; 0.99 is DQN's."""
    n_step: int = 1
    """Rewards summed before bootstrapping; 1 is what the paper analyses."""
    reward_clip: float | None = None
    """Rewards are clipped to ± this for learning, as DQN does on Atari; scores are never clipped."""
    optimiser: Literal["adam", "rmsprop", "centred-rmsprop"] = "adam"
    """Adam learns small problems faster; RMSprop is the authors' choice on Atari, centred DQN Zoo's."""
    learning_rate: float = 5e-4
    """The optimiser's step size."""
    optimiser_eps: float = 1e-8
    """Added to the root of the squared gradient (centred: inside it); 0.01 tames RMSprop on Atari."""
    rmsprop_alpha: float = 0.95
    """RMSprop's memory of the squared gradient; DQN's value."""
    loss: Literal["huber", "mse"] = "huber"
    """Huber (δ = 1) bounds each transition's pull, as the authors' code; mse is the paper's text."""
    max_grad_norm: float | None = 10.0
    """All gradients together are scaled down to this norm; 10 is the authors' value."""
    batch_size: int = 32
    """Transitions in one update; DQN's value."""
    update_period: int = 4
    """Agent steps between two updates; DQN's value."""
    target_period: int = 1_000
    """Agent steps between two copies of the online members to the target members."""
    replay_size: int = 50_000
    """Transitions kept."""
    compress: bool = True
    """Atari's frames are compressed in memory, to a tenth or so; it costs little time."""
    learning_starts: int = 1_000
    """Agent steps before the first update; the policy is ε-greedy from the start."""
    epsilon_start: float = 1.0
    """The first probability of a random action."""
    epsilon_end: float = 0.05
    """The last probability of a random action."""
    epsilon_steps: int = 10_000
    """Agent steps over which ε falls, linearly, from the first to the last."""
    evaluation_period: int = 10_000
    """Agent steps between two evaluations, bias measurement included; 0 for none."""
    evaluation_episodes: int = 20
    """Episodes of one evaluation; the paper's value."""
    evaluation_epsilon: float = 0.0
    """Probability of a random action in evaluations; the paper plays Atari with 0.001."""
    log_period: int = 1_000
    """Agent steps between two lines of metrics."""
    checkpoint_period: int = 25_000
    """Agent steps between two checkpoints: what a killed run has to repeat at most."""
    atari_protocol: Literal["paper", "machado"] = "paper"
    """Atari as the paper plays it (no-ops, a lost life ends an episode) or with sticky actions."""
    full_action_space: bool = False
    """Atari with all 18 actions of the console, instead of those that do something in the game."""
    envs: int = 1
    """Environments stepped together; updates per agent step stay the same."""
    device: str = "cpu"
    """Where the network lives: cpu, cuda or cuda:1 (as CUDA graphs; not tried on a GPU so far)."""
    threads: int = 1
    """Threads of the CPU's matrix products; small networks are fastest with one. 0: as torch decides."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        for field in fields(self):
            _checked(field.name, field.type, getattr(self, field.name))
        _positive(
            self,
            "n_step batch_size update_period target_period replay_size log_period checkpoint_period envs "
            "learning_rate optimiser_eps epsilon_steps",
        )
        _not_negative(self, "seed own_layers learning_starts evaluation_period threads")
        _probability(self, "discount epsilon_start epsilon_end evaluation_epsilon rmsprop_alpha")
        if self.rmsprop_alpha == 1:
            raise InputError("rmsprop-alpha must be below 1: with 1, RMSprop never sees a gradient.")
        if self.evaluation_period and self.evaluation_episodes < 1:
            raise InputError(f"evaluation-episodes must be at least 1, not {self.evaluation_episodes}.")
        if any(width < 1 for width in self.hidden):
            raise InputError(f"hidden must be widths of at least 1, not {self.hidden}.")
        for name in ("reward_clip", "max_grad_norm"):
            if getattr(self, name) is not None:
                _positive(self, name)
        if self.learning_starts > self.replay_size:
            raise InputError(
                f"learning-starts ({self.learning_starts}) must not exceed replay-size ({self.replay_size})."
            )
        return self

    def ensemble(self) -> Ensemble:
        """Return what the learner needs to know of the members; one network, unless overridden."""
        return Ensemble()

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON-able values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Rebuild a config from `to_json` gone through JSON."""
        if not isinstance(content, dict):
            raise InputTypeError(f"Options come by name, not as {content!r}.")
        return cls().override(**content)

    def override(self, **options: Any) -> Self:
        """Return a valid copy with these options changed; an unknown one is refused with the nearest name."""
        known = {field.name: field.type for field in fields(self)}
        for option in options:
            if option not in known:
                raise unknown_name(f"option of {self.name}", option, known)
        checked = {name: _checked(name, known[name], value) for name, value in options.items()}
        return replace(self, **checked).validate()


@dataclass(frozen=True, kw_only=True)
class DQNConfig(AgentConfig):
    """Q-learning with one network: the target's own maximum. Overestimates."""

    name: ClassVar[str] = "dqn"
    rule: ClassVar[str] = "q-learning"


@dataclass(frozen=True, kw_only=True)
class DoubleDQNConfig(AgentConfig):
    """Double DQN: the online network selects, its target copy evaluates. Overestimates less."""

    name: ClassVar[str] = "double-dqn"
    rule: ClassVar[str] = "double-q"


@dataclass(frozen=True, kw_only=True)
class EBQLConfig(AgentConfig):
    """Ensemble Bootstrapped Q-Learning: a member selects, the others evaluate. Between the two biases."""

    name: ClassVar[str] = "ebql"
    rule: ClassVar[str] = "ensemble-bootstrap"

    ensemble_size: int = 5
    """K, the number of members; 5 in the paper's Atari runs. 2 is deep double Q-learning."""
    members: Literal["all", "cycle"] = "all"
    """Who learns at an update: all members (the authors' code) or k = t mod K (the paper's pseudo-code)."""
    data: Literal["shared", "masked", "independent"] = "shared"
    """One minibatch for all members (the authors' code), masks drawn once a transition, or one batch each."""
    mask_probability: float = 0.5
    """With masked data: the probability that a member ever learns from a transition (Osband et al.)."""
    torso_gradient: Literal["sum", "mean"] = "sum"
    """The shared torso's gradient over members: their sum (the authors' code) or mean (Bootstrapped DQN)."""
    share_torso: bool = True
    """One torso for all members, as the paper; False gives K full networks."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        if self.ensemble_size < 2:
            raise InputError(
                f"EBQL needs ensemble-size ≥ 2, not {self.ensemble_size}: a member selects, others evaluate."
            )
        if not 0 < self.mask_probability <= 1:
            raise InputError(f"mask-probability must lie in (0, 1], not {self.mask_probability}.")
        if self.torso_gradient == "mean" and not self.share_torso:
            raise InputError("torso-gradient mean and no share-torso clash: no torso is shared.")
        return self

    def ensemble(self) -> Ensemble:
        """Return what the learner needs to know of the members."""
        probability = self.mask_probability if self.data == "masked" else 1.0
        return Ensemble(
            self.ensemble_size, self.members, self.data, probability, self.torso_gradient, self.share_torso
        )


CONFIGS: dict[str, type[AgentConfig]] = {
    config.name: config for config in (DQNConfig, DoubleDQNConfig, EBQLConfig)
}


def config_type(agent: str) -> type[AgentConfig]:
    """Return the config of the agent with this name; refuse an unknown one with the nearest name."""
    if agent not in CONFIGS:
        raise unknown_name("agent", agent, CONFIGS)
    return CONFIGS[agent]


def _option(name: str) -> str:
    return name.replace("_", "-")


def _positive(config: AgentConfig, names: str) -> None:
    for name in names.split():
        if not getattr(config, name) > 0:
            raise InputError(f"{_option(name)} must be positive, not {getattr(config, name)}.")


def _not_negative(config: AgentConfig, names: str) -> None:
    for name in names.split():
        if not getattr(config, name) >= 0:
            raise InputError(f"{_option(name)} must not be negative, not {getattr(config, name)}.")


def _probability(config: AgentConfig, names: str) -> None:
    for name in names.split():
        if not 0 <= getattr(config, name) <= 1:
            raise InputError(f"{_option(name)} must lie between 0 and 1, not {getattr(config, name)}.")


def _checked(name: str, annotation: Any, value: Any) -> Any:
    """Return an option's value as its annotation has it (a NumPy integer as an int, say), or refuse it."""
    option = _option(name)
    if annotation is int:
        return _whole(option, value)
    if annotation in (float, float | None):
        return None if value is None and annotation is not float else _finite(option, value)
    if annotation in (bool, str):
        if not isinstance(value, annotation):
            wanted = "True or False" if annotation is bool else "a word"
            raise InputTypeError(f"{option} must be {wanted}, not {value!r}.")
    elif getattr(annotation, "__origin__", None) is Literal:
        if value not in annotation.__args__:
            raise unknown_name(option, str(value), annotation.__args__)
    elif annotation == tuple[int, ...]:
        if not isinstance(value, list | tuple):
            raise InputTypeError(f"{option} must be whole numbers, such as (64, 64), not {value!r}.")
        return tuple(_whole(option, width) for width in value)
    return value


def _whole(option: str, value: Any) -> int:
    if isinstance(value, bool):
        raise InputTypeError(f"{option} must be a whole number, not {value!r}.")
    number = whole_number(option, value, least=-_TOO_LARGE)
    if number >= _TOO_LARGE:
        raise InputError(f"{option} must be below 2⁶³, not {number}.")
    return number


def _finite(option: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{option} must be a number, not {value!r}.")
    number = float(value)
    if not math.isfinite(number):
        raise InputError(f"{option} must be a finite number, not {value!r}.")
    return number
