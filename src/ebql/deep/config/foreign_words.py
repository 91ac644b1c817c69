"""What the words of Stable-Baselines3 are called here, for errors that say so."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ebql.errors import InputError, InputTypeError

P = ParamSpec("P")
R = TypeVar("R")

CALLED_HERE = {
    "activation_fn": "activation",
    "buffer_size": "replay_size",
    "env": "environment",
    "eval_env": "evaluation_environment",
    "eval_freq": "evaluation_period",
    "exploration_final_eps": "epsilon_end",
    "exploration_fraction": "epsilon_steps, a number of agent steps",
    "exploration_initial_eps": "epsilon_start",
    "features_extractor_class": "encoder",
    "gamma": "discount",
    "gradient_steps": "updates_per_period",
    "log_interval": "log_period, an option of the agent",
    "lr": "learning_rate",
    "n_envs": "envs",
    "n_eval_episodes": "evaluation_episodes, or episodes in evaluate",
    "net_arch": "hidden",
    "num_envs": "envs",
    "policy_kwargs": "hidden, activation, layer_norm, encoder or network",
    "progress_bar": "progress",
    "target_update_interval": "target_period",
    "tau": "target_rate",
    "tensorboard_log": "out, an argument of learn: a run's folder has TensorBoard's events",
    "total_timesteps": "steps",
    "train_freq": "update_period",
    "verbose": "progress, an argument of learn: learn(50_000, progress=True)",
}
"""Words that people bring along, and what says the same here."""

_POLICIES = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy")


def refuse_foreign_words(*arguments: Any, **options: Any) -> None:
    """Refuse a policy's name or a keyword of Stable-Baselines3, and say what it is called here."""
    for policy in (*arguments[:1], options.get("policy")):
        if isinstance(policy, str) and policy in _POLICIES:
            raise InputError(
                f"There is no {policy} here: the first argument is the environment. The network follows from "
                "its observations; hidden, torso and encoder change it."
            )
    for word in options:
        if word in CALLED_HERE:
            raise InputTypeError(f"There is no {word} here: use {CALLED_HERE[word]}.")


def in_our_words(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function say what keywords of Stable-Baselines3 are called here."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        refuse_foreign_words(**options)
        return function(*arguments, **options)

    return call
