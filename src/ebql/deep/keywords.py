"""The options of agents as typed keyword arguments, so that editors and type checkers know them.

Each class repeats the names and types of a config; a test holds both equal. Defaults, checks and help are in
`ebql.deep.config`.
"""

from collections.abc import Callable
from dataclasses import fields
from inspect import Parameter, Signature, signature
from typing import Literal, TypedDict

from ebql.deep.config.base import AgentConfig
from ebql.deep.networks.own import MakeEncoder, MakeNetwork
from ebql.environments import Environment


class Setup(TypedDict, total=False):
    """What an agent takes beside its options."""

    config: AgentConfig | None
    preset: str | None
    evaluation_environment: Environment | None
    encoder: MakeEncoder | None
    network: MakeNetwork | None


class AgentOptions(Setup, total=False):
    """The options of all agents."""

    seed: int
    torso: Literal["auto", "mlp", "minatar", "nature", "small"]
    hidden: tuple[int, ...]
    own_layers: int
    activation: Literal["relu", "tanh", "elu", "gelu", "silu"]
    layer_norm: bool
    normalise_observations: bool
    discount: float
    n_step: int
    prioritized: bool
    priority_alpha: float
    priority_beta: float
    priority_beta_steps: int
    dueling: bool
    noisy: bool
    noise_scale: float
    atoms: int | None
    v_min: float
    v_max: float
    quantiles: int | None
    implicit_quantiles: int | None
    target_fractions: int
    policy_fractions: int
    reward_scale: float
    reward_clip: float | None
    optimiser: Literal["adam", "rmsprop", "centred-rmsprop", "momentum-rmsprop"]
    learning_rate: float
    learning_rate_schedule: Literal["constant", "linear", "cosine"]
    learning_rate_end: float
    learning_rate_steps: int
    optimiser_eps: float
    rmsprop_alpha: float
    rmsprop_momentum: float
    loss: Literal["huber", "mse"]
    max_grad_norm: float | None
    batch_size: int
    update_period: int
    updates_per_period: int
    target_period: int
    target_rate: float
    replay_size: int
    compress: bool
    learning_starts: int
    epsilon_start: float
    epsilon_end: float
    epsilon_steps: int
    epsilon_schedule: Literal["linear", "exponential", "piecewise"]
    epsilon_points: tuple[tuple[int, float], ...]
    action_masks: bool
    evaluation_period: int
    evaluation_episodes: int
    evaluation_epsilon: float
    log_period: int
    checkpoint_period: int
    atari_protocol: Literal["paper", "machado"]
    full_action_space: bool
    envs: int
    device: str
    threads: int
    precision: Literal["float32", "bfloat16"]


class EnsembleOptions(AgentOptions, total=False):
    """The options of all agents with an ensemble."""

    ensemble_size: int
    members: Literal["all", "cycle"]
    data: Literal["shared", "masked", "independent"]
    mask_probability: float
    torso_gradient: Literal["sum", "mean"]
    share_torso: bool
    exploration: Literal["epsilon", "ucb", "thompson"]
    ucb_width: float
    prior_scale: float
    log_diversity: bool


class EBQLOptions(EnsembleOptions, total=False):
    """The options of EBQL and Rainbow."""

    split: int | Literal["adaptive"]


class AveragedDQNOptions(AgentOptions, total=False):
    """The options of AveragedDQN."""

    snapshots: int


class WeightedDoubleDQNOptions(EnsembleOptions, total=False):
    """The options of WeightedDoubleDQN."""

    c: float


class REDQOptions(EnsembleOptions, total=False):
    """The options of REDQ."""

    subset_size: int


class SunriseOptions(EnsembleOptions, total=False):
    """The options of Sunrise."""

    temperature: float


def signature_with_options(init: Callable[..., None], config: type[AgentConfig]) -> Signature:
    """Return the signature of an agent's class: the arguments of `init`, and every option of its config."""
    _, *own, _ = signature(init).parameters.values()  # without `self` and `**options`
    options = (
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(config)
    )
    return Signature([*own, *options])
