"""A callback of Stable-Baselines3 that logs the bias."""

from dataclasses import asdict
from typing import Any

import gymnasium
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecEnvWrapper,
    VecNormalize,
    sync_envs_normalization,
)

from ebql.deep.evaluation.bias import Bias
from ebql.errors import InputError, InputTypeError, whole_number
from ebql.neighbours.agents import q_values_of
from ebql.neighbours.measuring import measure_bias
from ebql.runs.metric_names import BIAS_PREFIX


class BiasCallback(BaseCallback):
    """Measures the bias of the model every `eval_freq` calls, and logs it as `bias/mean`, `bias/value`, ….

    The arguments are named as those of `EvalCallback`. Each measurement plays `n_eval_episodes` new episodes
    in `eval_env`. `last_bias` is the latest result. If the model trains under `VecNormalize`, `eval_env` must
    be wrapped alike; its statistics are copied from the training environment.

    >>> from stable_baselines3 import DQN
    >>> callback = BiasCallback(gymnasium.make("CartPole-v1"), eval_freq=100, n_eval_episodes=2)
    >>> _ = DQN("MlpPolicy", "CartPole-v1", seed=0).learn(100, callback=callback)
    >>> callback.last_bias.states > 0
    True
    """

    def __init__(
        self,
        eval_env: "gymnasium.Env[Any, Any] | VecEnv",
        *,
        eval_freq: int = 10_000,
        n_eval_episodes: int = 20,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if not isinstance(eval_env, gymnasium.Env | VecEnv):
            raise InputTypeError(f"eval_env must be an Env or a VecEnv, not {eval_env!r}.")
        self.eval_env = eval_env
        self.eval_freq = whole_number("eval_freq", eval_freq, 1)
        self.n_eval_episodes = whole_number("n_eval_episodes", n_eval_episodes, 1)
        self.seed = whole_number("seed", seed, 0)
        self.last_bias: Bias | None = None

    def _init_callback(self) -> None:
        """Refuse a model without Q-values, and an environment that does not fit it."""
        q_values_of(self.model)
        if _instances(self.eval_env) & _instances(self.training_env):
            raise InputError("eval_env must not be the environment that the model trains in.")
        training, own = _normaliser(self.training_env), _normaliser(self.eval_env)
        if training is not None and own is None:
            raise InputError("The model trains under VecNormalize: wrap eval_env in VecNormalize, too.")
        if training is not None and own is not None and training.norm_reward != own.norm_reward:
            raise InputError(
                "Q-values are in units of the training rewards: norm_reward of eval_env's VecNormalize "
                f"must be {training.norm_reward}, too."
            )

    def _on_step(self) -> bool:
        if self.n_calls % self.eval_freq:
            return True
        if isinstance(self.eval_env, VecEnv) and _normaliser(self.training_env) is not None:
            sync_envs_normalization(self.training_env, self.eval_env)
        bias = self.last_bias = measure_bias(
            self.model, self.eval_env, episodes=self.n_eval_episodes, seed=self.seed + self.num_timesteps
        )
        for name, value in asdict(bias).items():
            if isinstance(value, float | int):
                self.logger.record(f"{BIAS_PREFIX}{name}", value)
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)
        if self.verbose >= 1:
            print(f"step {self.num_timesteps}: bias {bias.mean}. {bias.explanation}")
        return True


def _instances(environment: Any) -> set[int]:
    """Return the identities of the innermost environments, as far as this process has them."""
    base = environment.unwrapped
    return {id(base)} | {id(inner.unwrapped) for inner in getattr(base, "envs", ())}


def _normaliser(environment: Any) -> VecNormalize | None:
    """Return the `VecNormalize` wrapper of an environment, if it has one."""
    while isinstance(environment, VecEnvWrapper):
        if isinstance(environment, VecNormalize):
            return environment
        environment = environment.venv
    return None
