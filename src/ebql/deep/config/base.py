"""The options that agents share: one dataclass per agent, with defaults and the reason for each.

The same dataclass defines the command line (its docstrings are the help texts), the JSON in a run's folder
and the keyword arguments in Python. Nothing here imports torch. Steps are agent steps, summed over
environments. The defaults suit small problems; `presets` has values for each family of environments.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ebql.deep.config.checks import (
    check_epsilon_schedule,
    checked,
    distinct,
    not_negative,
    option_name,
    positive,
    probability,
)
from ebql.errors import InputError, InputTypeError, unknown_name

_MOST_THREADS = 1024


class Ensemble(NamedTuple):
    """How a learner trains and combines its members; the defaults describe a single network."""

    size: int = 1
    members: Literal["all", "cycle"] = "all"
    data: Literal["shared", "masked", "independent"] = "shared"
    mask_probability: float = 1.0
    torso_gradient: Literal["sum", "mean"] = "sum"
    share_torso: bool = True
    snapshots: int = 0
    """How many of its last target copies a single network averages; 0 uses the last one alone."""
    prior_scale: float = 0.0
    exploration: Literal["epsilon", "ucb", "thompson"] = "epsilon"
    ucb_width: float = 1.0
    pessimistic: bool = False
    """Whether the ensemble acts on the members' minimum instead of their mean."""
    log_diversity: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """The options of all agents."""

    name: ClassVar[str]
    """The agent's name on the command line."""
    rule: ClassVar[str]
    """The agent's bootstrap rule, a key of `ebql.deep.targets.RULES`."""
    variant: ClassVar[str | None] = None
    """The ending of the presets made for this agent: `rainbow` in `minatar-rainbow`."""

    seed: int = 0
    """Controls all randomness: runs with the same seed on the same machine end with identical weights."""
    torso: Literal["auto", "mlp", "minatar", "nature", "small"] = "auto"
    """Feature extractor: dense layers (mlp) or convolutions (minatar, nature, small); auto picks by shape."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the dense layers; convolutions are not listed."""
    own_layers: int = 1
    """Last hidden layers that each member owns; 1 as in the authors' code, 0 leaves a linear output layer."""
    activation: Literal["relu", "tanh", "elu", "gelu", "silu"] = "relu"
    """Activation of the dense hidden layers; convolutions always have ReLU."""
    layer_norm: bool = False
    """Normalise the dense hidden layers before their activation (layer normalisation, Ba et al., 2016)."""
    normalise_observations: bool = False
    """Subtract the running mean of observations and divide by their standard deviation; not for images."""
    discount: float = 0.99
    """Discount factor γ; 0.99 is DQN's."""
    n_step: int = 1
    """Rewards summed before bootstrapping; 1 is the paper's."""
    prioritized: bool = False
    """Sample transitions by their last error (prioritised replay, Schaul et al., 2016), not uniformly."""
    priority_alpha: float = 0.5
    """Exponent of the priorities: transitions are drawn in proportion to |error|^α; 0.5 is Rainbow's."""
    priority_beta: float = 0.4
    """Initial exponent of the importance weights of prioritised replay; it rises to 1. 0.4 is Rainbow's."""
    priority_beta_steps: int = 1_000_000
    """Agent steps over which that exponent rises to 1."""
    dueling: bool = False
    """Split the network into a state-value and an advantage stream (Wang et al., 2016)."""
    noisy: bool = False
    """Explore with learnt noise on the weights of the dense layers (Fortunato et al., 2018)."""
    noise_scale: float = 0.5
    """Initial noise σ₀ of noisy layers, in units of 1/√(layer's inputs); 0.5 is Rainbow's."""
    atoms: int | None = None
    """Learn a distribution of returns over this many atoms (C51 has 51); None learns mean values."""
    v_min: float = -10.0
    """Smallest return that the atoms cover."""
    v_max: float = 10.0
    """Largest return that the atoms cover."""
    quantiles: int | None = None
    """Learn this many quantiles of the return (QR-DQN has 200), which need no v-min and v-max."""
    implicit_quantiles: int | None = None
    """Learn quantiles at this many random fractions per update (IQN's N is 64), as a function of them."""
    target_fractions: int = 64
    """With implicit quantiles, random fractions at which the target is computed; IQN's N′ is 64."""
    policy_fractions: int = 32
    """With implicit quantiles, fractions that action values are averaged over; IQN's K is 32."""
    reward_scale: float = 1.0
    """Multiply rewards by this for learning, before clipping. Reported scores are never scaled."""
    reward_clip: float | None = None
    """Clip rewards to ± this for learning; DQN uses 1 on Atari. Reported scores are never clipped."""
    optimiser: Literal["adam", "rmsprop", "centred-rmsprop", "momentum-rmsprop"] = "adam"
    """Adam learns small problems faster; the authors use rmsprop on Atari, DQN Zoo centred-rmsprop."""
    learning_rate: float = 5e-4
    """Learning rate of the optimiser; its initial value if there is a schedule."""
    learning_rate_schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning-rate schedule: constant, or linear or cosine decay to learning-rate-end."""
    learning_rate_end: float = 0.0
    """Final learning rate of a schedule."""
    learning_rate_steps: int = 100_000
    """Agent steps until a schedule reaches the final learning rate."""
    optimiser_eps: float = 1e-8
    """Added to the root of the mean squared gradient (centred-rmsprop: under the root); 0.01 on Atari."""
    rmsprop_alpha: float = 0.95
    """Decay rate of RMSprop's mean squared gradient; 0.95 is DQN's."""
    rmsprop_momentum: float = 0.95
    """Momentum of momentum-rmsprop; at 0 it is PyTorch's centred RMSprop."""
    loss: Literal["huber", "mse"] = "huber"
    """Huber loss with δ = 1, as in the authors' code, or squared error (mse), as in the paper's text."""
    max_grad_norm: float | None = 10.0
    """Clip the global gradient norm to this; None turns clipping off. 10 as in the authors' code."""
    batch_size: int = 32
    """Transitions per update; 32 is DQN's."""
    update_period: int = 4
    """Agent steps between updates, or between blocks of updates; 4 is DQN's."""
    updates_per_period: int = 1
    """Updates in each block; the policy is fixed between blocks. 1 is DQN's."""
    target_period: int = 1_000
    """Agent steps between copies of the online members to the target members."""
    target_rate: float = 1.0
    """Weight of the online members in a copy to the target members: 1 is DQN's, less is Polyak averaging."""
    replay_size: int = 50_000
    """Transitions kept in the replay buffer."""
    compress: bool = True
    """Compress Atari frames in memory, to about a tenth of their size; this costs little time."""
    learning_starts: int = 1_000
    """Agent steps before the first update; actions are ε-greedy from the start."""
    epsilon_start: float = 1.0
    """Initial probability ε of a random action."""
    epsilon_end: float = 0.05
    """Final probability ε of a random action."""
    epsilon_steps: int = 10_000
    """Agent steps over which ε falls from its initial to its final value."""
    epsilon_schedule: Literal["linear", "exponential", "piecewise"] = "linear"
    """ε schedule: linear decay, exponential decay, or linear between epsilon-points (piecewise)."""
    epsilon_points: tuple[tuple[int, float], ...] = ()
    """Agent steps and ε of a piecewise schedule, joined by lines: 0 1 1000000 0.1 10000000 0.01."""
    action_masks: bool = True
    """Take and bootstrap from legal actions only, in environments that give action masks."""
    evaluation_period: int = 10_000
    """Agent steps between evaluations, which also measure the bias; 0 turns them off."""
    evaluation_episodes: int = 20
    """Episodes per evaluation; 20 is the paper's."""
    evaluation_epsilon: float = 0.0
    """Probability of a random action in evaluations; the paper uses 0.001 on Atari."""
    log_period: int = 1_000
    """Agent steps between lines of metrics."""
    checkpoint_period: int = 25_000
    """Agent steps between checkpoints: the most that a killed run has to repeat."""
    atari_protocol: Literal["paper", "machado"] = "paper"
    """Atari as in the paper (no-op starts, a lost life ends an episode) or with sticky actions (machado)."""
    full_action_space: bool = False
    """Use all 18 actions of the Atari console, not only those that have an effect in the game."""
    envs: int = 1
    """Environments stepped together; the ratio of updates to agent steps stays the same."""
    device: str = "cpu"
    """Device of the networks: cpu, cuda or cuda:1. Training on a GPU has not been tested yet."""
    threads: int = 1
    """CPU threads of torch; 1 is fastest for small networks, 0 keeps torch's own setting."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of matrix products and convolutions in updates; weights and actions stay float32."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        for field in fields(self):
            checked(field.name, field.type, getattr(self, field.name))
        positive(
            self,
            "n_step batch_size update_period updates_per_period target_period replay_size "
            "log_period checkpoint_period envs learning_rate optimiser_eps epsilon_steps "
            "priority_beta_steps noise_scale learning_rate_steps reward_scale target_rate "
            "target_fractions policy_fractions",
        )
        not_negative(
            self, "seed own_layers learning_starts evaluation_period threads priority_alpha learning_rate_end"
        )
        probability(
            self,
            "discount epsilon_start epsilon_end evaluation_epsilon rmsprop_alpha rmsprop_momentum "
            "priority_beta target_rate",
        )
        if self.threads > _MOST_THREADS:
            raise InputError(f"threads must be at most {_MOST_THREADS}, not {self.threads}.")
        if self.rmsprop_alpha == 1:
            raise InputError("rmsprop-alpha must be below 1: at 1, RMSprop ignores all gradients.")
        if self.rmsprop_momentum == 1:
            raise InputError("rmsprop-momentum must be below 1: at 1, RMSprop never slows down.")
        if self.evaluation_period and self.evaluation_episodes < 1:
            raise InputError(f"evaluation-episodes must be at least 1, not {self.evaluation_episodes}.")
        if any(width < 1 for width in self.hidden):
            raise InputError(f"hidden must list widths of at least 1, not {self.hidden}.")
        check_epsilon_schedule(
            self.epsilon_schedule, self.epsilon_start, self.epsilon_end, self.epsilon_points
        )
        for name in ("reward_clip", "max_grad_norm"):
            if getattr(self, name) is not None:
                positive(self, name)
        if self.atoms is not None and self.atoms < 2:
            raise InputError(f"atoms must be at least 2, not {self.atoms}.")
        if self.v_min >= self.v_max:
            raise InputError(f"v-min ({self.v_min}) must be below v-max ({self.v_max}).")
        if self.atoms is not None:
            distinct(self.v_min, self.v_max, self.atoms)
        self._check_distribution()
        if self.learning_starts > self.replay_size:
            raise InputError(
                f"learning-starts ({self.learning_starts}) must not exceed replay-size ({self.replay_size})."
            )
        return self

    def _check_distribution(self) -> None:
        """Refuse two kinds of distributions at once, and the squared error for any of them."""
        losses = {
            "atoms": "cross-entropy",
            "quantiles": "quantile Huber loss",
            "implicit_quantiles": "quantile Huber loss",
        }
        given = [name for name in losses if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(
                f"{option_name(given[0])} and {option_name(given[1])} contradict each other: leave one out."
            )
        for name in given:
            if name != "atoms":
                positive(self, name)
            if self.loss == "mse":
                raise InputError(
                    f"loss mse does not apply to {option_name(name)}, whose loss is the {losses[name]}: "
                    "leave one of them out."
                )

    @property
    def outputs_per_action(self) -> int | None:
        """The outputs of a member for each action: atoms or quantiles; None for a single value."""
        return self.atoms if self.quantiles is None else self.quantiles

    def check_exploration(self) -> None:
        """Refuse options with which the agent would never explore."""
        if self.epsilon_schedule == "piecewise":
            explores = any(epsilon for _, epsilon in self.epsilon_points)
        else:
            explores = bool(self.epsilon_start or self.epsilon_end)
        if explores or self.noisy:
            return
        ensemble = self.ensemble()
        if ensemble.exploration == "ucb" and ensemble.ucb_width == 0:
            raise InputError("The agent would never explore: raise epsilon-start, epsilon-end or ucb-width.")
        if ensemble.exploration == "epsilon":
            raise InputError(
                "The agent would never explore: raise epsilon-start or epsilon-end, or use noisy."
            )

    def bootstrap_rule(self) -> str:
        """Return the bootstrap rule for these options, a key of `ebql.deep.targets.RULES`."""
        return self.rule

    def ensemble(self) -> Ensemble:
        """Return how the learner trains and combines the members; a single network, unless overridden."""
        return Ensemble()

    @classmethod
    def label(cls) -> str:
        """Return the name of the agent's Python class."""
        return cls.__name__.removesuffix("Config")

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON-able values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Rebuild a config from the output of `to_json` after a round trip through JSON."""
        if not isinstance(content, dict):
            raise InputTypeError(f"Options must be a table of names and values, not {content!r}.")
        return cls().override(**content)

    def override(self, **options: Any) -> Self:
        """Return a copy with these options changed and checked; suggest a name for an unknown one."""
        known = {field.name: field.type for field in fields(self)}
        for option in options:
            if option not in known:
                raise unknown_name(f"option of {self.name}", option, known)
        values = {name: checked(name, known[name], value) for name, value in options.items()}
        return replace(self, **values).validate()


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig(AgentConfig):
    """The options of all agents with an ensemble."""

    least_members: ClassVar[int] = 2

    ensemble_size: int = 5
    """Number of members, K."""
    members: Literal["all", "cycle"] = "all"
    """Members trained at update t: all (authors' code) or k = t mod K (cycle, the paper's pseudo-code)."""
    data: Literal["shared", "masked", "independent"] = "shared"
    """Minibatches: one shared by all members (authors' code), one with a mask per transition, or one each."""
    mask_probability: float = 0.5
    """With masked data, the probability that a member learns from a transition (Osband et al., 2016)."""
    torso_gradient: Literal["sum", "mean"] = "sum"
    """Gradient of the shared torso: the members' sum (authors' code) or mean (Bootstrapped DQN)."""
    share_torso: bool = True
    """Share one torso among all members, as in the paper; otherwise train K separate networks."""
    exploration: Literal["epsilon", "ucb", "thompson"] = "epsilon"
    """Act ε-greedily on the members' mean (epsilon), mean + spread (ucb) or one per episode (thompson)."""
    ucb_width: float = 1.0
    """With exploration ucb, how many standard deviations over members are added to the mean."""
    prior_scale: float = 0.0
    """Scale of the fixed random network added to each member (Osband et al., 2018); 0 adds none."""
    log_diversity: bool = False
    """Log the members' TD errors on transitions whose action is greedy for them, and on all others."""

    def validate(self) -> Self:
        """Return the config; refuse values out of range and options that contradict each other."""
        super().validate()
        not_negative(self, "ucb_width prior_scale")
        if self.ensemble_size < self.least_members:
            raise InputError(
                f"{self.label()} needs ensemble-size ≥ {self.least_members}, not {self.ensemble_size}."
            )
        if self.ensemble_size == 1:
            for name, value in (("data", "masked"), ("exploration", "ucb"), ("exploration", "thompson")):
                if getattr(self, name) == value:
                    raise InputError(f"{name} {value} needs an ensemble-size of at least 2, not 1.")
        if not 0 < self.mask_probability <= 1:
            raise InputError(f"mask-probability must lie in (0, 1], not {self.mask_probability}.")
        if self.torso_gradient == "mean" and not self.share_torso:
            raise InputError(
                "torso-gradient mean needs a shared torso: use torso-gradient sum, or turn share-torso on."
            )
        for name in ("atoms", "quantiles", "implicit_quantiles"):
            if self.prior_scale and getattr(self, name) is not None:
                raise InputError(
                    f"prior-scale does not work with {option_name(name)}, only with mean values: "
                    "leave one of them out."
                )
        return self

    def ensemble(self) -> Ensemble:
        """Return how the learner trains and combines the members."""
        return Ensemble(
            self.ensemble_size,
            self.members,
            self.data,
            self.mask_probability if self.data == "masked" else 1.0,
            self.torso_gradient,
            self.share_torso,
            prior_scale=self.prior_scale,
            exploration=self.exploration,
            ucb_width=self.ucb_width,
            log_diversity=self.log_diversity,
        )
