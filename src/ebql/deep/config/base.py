"""One dataclass an agent: its options, their defaults and the reason for each.

The same object is the command line (its docstrings are the help), the JSON in a run folder and the
keyword arguments in Python. Nothing here imports torch. Steps are agent steps, summed over environments.
Defaults are small-problem defaults; `presets` hold those of each family of environments.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ebql.deep.config.checks import checked, distinct, not_negative, positive, probability
from ebql.errors import InputError, InputTypeError, unknown_name


class Ensemble(NamedTuple):
    """What a learner needs to know of its members; as it stands, a single network."""

    size: int = 1
    members: Literal["all", "cycle"] = "all"
    data: Literal["shared", "masked", "independent"] = "shared"
    mask_probability: float = 1.0
    torso_gradient: Literal["sum", "mean"] = "sum"
    share_torso: bool = True
    snapshots: int = 0
    """How many of its last copies a single network learns from; 0: from the last one, as everybody."""
    prior_scale: float = 0.0
    exploration: Literal["epsilon", "ucb", "thompson"] = "epsilon"
    ucb_width: float = 1.0
    pessimistic: bool = False
    """Whether the members say together what the least of them says, instead of their mean."""


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """The options that every agent has."""

    name: ClassVar[str]
    """What the command line calls the agent."""
    rule: ClassVar[str]
    """The agent's bootstrap rule, a key of `ebql.deep.targets.RULES`."""
    variant: ClassVar[str | None] = None
    """The ending of the presets made for this agent: `rainbow` for `minatar-rainbow`."""

    seed: int = 0
    """Settles everything random: two runs with one seed on one machine end with the same weights."""
    torso: Literal["auto", "mlp", "minatar", "nature", "small"] = "auto"
    """The feature extractor: dense layers, MinAtar's convolution, Atari's (nature, small); auto: by shape."""
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the dense layers, the convolutions not counted."""
    own_layers: int = 1
    """How many of the last hidden layers each member owns: 1, as the authors; 0 leaves linear read-outs."""
    discount: float = 0.99
    """γ, the worth of the next step's value; 0.99 is DQN's."""
    n_step: int = 1
    """Rewards summed before bootstrapping; 1 is what the paper analyses."""
    prioritized: bool = False
    """Draw transitions by how wrong the members were about them (Schaul et al., 2016), not uniformly."""
    priority_alpha: float = 0.5
    """How much errors matter: draws are proportional to |error| to this power; 0.5 is Rainbow's."""
    priority_beta: float = 0.4
    """How much of the bias of such draws is corrected at first; all of it after priority-beta-steps."""
    priority_beta_steps: int = 1_000_000
    """Agent steps over which that correction rises to all."""
    dueling: bool = False
    """Two streams, one for a state's value and one for the actions' advantages (Wang et al., 2016)."""
    noisy: bool = False
    """UpdateResult noise on the weights of dense layers, for exploration (Fortunato et al., 2018)."""
    noise_scale: float = 0.5
    """σ₀, the noise to begin with, in parts of a layer's initial range."""
    atoms: int | None = None
    """Returns that a distribution is learnt over (C51, Bellemare et al., 2017: 51); None: values only."""
    v_min: float = -10.0
    """The least of the returns that a distribution is learnt over."""
    v_max: float = 10.0
    """The largest of the returns that a distribution is learnt over."""
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
    """Agent steps between two updates, or blocks of updates; DQN's value."""
    updates_per_period: int = 1
    """Updates taken together every update-period steps; the policy is fixed in between. 1 is DQN's."""
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
            checked(field.name, field.type, getattr(self, field.name))
        positive(
            self,
            "n_step batch_size update_period updates_per_period target_period replay_size "
            "log_period checkpoint_period envs learning_rate optimiser_eps epsilon_steps "
            "priority_beta_steps noise_scale",
        )
        not_negative(self, "seed own_layers learning_starts evaluation_period threads priority_alpha")
        probability(self, "discount epsilon_start epsilon_end evaluation_epsilon rmsprop_alpha priority_beta")
        if self.rmsprop_alpha == 1:
            raise InputError("rmsprop-alpha must be below 1: with 1, RMSprop never sees a gradient.")
        if self.evaluation_period and self.evaluation_episodes < 1:
            raise InputError(f"evaluation-episodes must be at least 1, not {self.evaluation_episodes}.")
        if any(width < 1 for width in self.hidden):
            raise InputError(f"hidden must be widths of at least 1, not {self.hidden}.")
        for name in ("reward_clip", "max_grad_norm"):
            if getattr(self, name) is not None:
                positive(self, name)
        if self.atoms is not None and self.atoms < 2:
            raise InputError(f"atoms must be at least 2, not {self.atoms}: one return is no distribution.")
        if self.v_min >= self.v_max:
            raise InputError(f"v-min {self.v_min} and v-max {self.v_max} clash: v-min must be the smaller.")
        if self.atoms is not None:
            distinct(self.v_min, self.v_max, self.atoms)
        if self.atoms is not None and self.loss == "mse":
            raise InputError("atoms and loss mse clash: distributions are compared by their cross-entropy.")
        if self.learning_starts > self.replay_size:
            raise InputError(
                f"learning-starts ({self.learning_starts}) must not exceed replay-size ({self.replay_size})."
            )
        return self

    def check_exploration(self) -> None:
        """Refuse options with which an agent would never try anything."""
        if self.epsilon_start or self.epsilon_end or self.noisy:
            return
        ensemble = self.ensemble()
        if ensemble.exploration == "ucb" and ensemble.ucb_width == 0:
            raise InputError("epsilon 0 and ucb-width 0 clash: nothing explores.")
        if ensemble.exploration == "epsilon":
            raise InputError("epsilon 0 and no noisy clash: nothing explores. Give epsilon-start and -end.")

    def bootstrap_rule(self) -> str:
        """Return the bootstrap rule that these options ask for, a key of `ebql.deep.targets.RULES`."""
        return self.rule

    def ensemble(self) -> Ensemble:
        """Return what the learner needs to know of the members; one network, unless overridden."""
        return Ensemble()

    @classmethod
    def label(cls) -> str:
        """Return what Python calls the agent."""
        return cls.__name__.removesuffix("Config")

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
        values = {name: checked(name, known[name], value) for name, value in options.items()}
        return replace(self, **values).validate()


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig(AgentConfig):
    """The options of every agent with members."""

    least_members: ClassVar[int] = 2

    ensemble_size: int = 5
    """K, the number of members."""
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
    exploration: Literal["epsilon", "ucb", "thompson"] = "epsilon"
    """Greedy on the members' mean, on their mean + ucb-width spreads, or on one member an episode; with ε."""
    ucb_width: float = 1.0
    """With exploration ucb: how many standard deviations over members the bound lies above the mean."""
    prior_scale: float = 0.0
    """A fixed random network, times this, is added to each member (Osband et al., 2018); 0 for none."""

    def validate(self) -> Self:
        """Return the config itself; refuse a value out of range, or one that contradicts another."""
        super().validate()
        not_negative(self, "ucb_width prior_scale")
        if self.ensemble_size < self.least_members:
            raise InputError(
                f"{self.label()} needs ensemble-size ≥ {self.least_members}, not {self.ensemble_size}"
                + (": its members must differ." if self.least_members == 2 else ".")
            )
        if self.ensemble_size == 1:
            for name, one in (("data", "masked"), ("exploration", "ucb"), ("exploration", "thompson")):
                if getattr(self, name) == one:
                    raise InputError(f"{name} {one} and ensemble-size 1 clash: it needs members that differ.")
        if not 0 < self.mask_probability <= 1:
            raise InputError(f"mask-probability must lie in (0, 1], not {self.mask_probability}.")
        if self.torso_gradient == "mean" and not self.share_torso:
            raise InputError(
                "torso-gradient mean and no share-torso clash: no torso is shared; use torso-gradient sum."
            )
        if self.prior_scale and self.atoms is not None:
            raise InputError("prior-scale and atoms clash: a prior is added to values, not to distributions.")
        return self

    def ensemble(self) -> Ensemble:
        """Return what the learner needs to know of the members."""
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
        )
