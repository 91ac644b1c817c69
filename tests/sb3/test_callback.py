"""The bias in the logs of Stable-Baselines3."""

import gymnasium
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecNormalize

from ebql import measure_bias
from ebql.errors import InputError, InputTypeError
from ebql.sb3 import BiasCallback

SMALL = {"buffer_size": 500, "learning_starts": 50, "gamma": 0.9, "seed": 0, "device": "cpu"}


def cartpole():
    return gymnasium.make("CartPole-v1")


def test_the_bias_is_logged_to_the_users_own_logger(tmp_path):
    model = DQN("MlpPolicy", "CartPole-v1", **SMALL | {"learning_starts": 10_000})
    model.set_logger(configure(str(tmp_path), ["csv"]))
    callback = BiasCallback(cartpole(), eval_freq=100, n_eval_episodes=3, seed=5)
    model.learn(200, callback=[callback, EvalCallback(make_vec_env("CartPole-v1"), eval_freq=200, verbose=0)])
    model.logger.close()
    lines = [line.split(",") for line in (tmp_path / "progress.csv").read_text().splitlines()]
    column, steps = lines[0].index("bias/mean"), lines[0].index("time/total_timesteps")
    logged = [(line[steps], float(line[column])) for line in lines[1:] if line[column]]
    assert [step for step, _ in logged] == ["100", "200"]
    assert logged[1][1] == callback.last_bias.mean
    # Learning has not started, so the model is still the one that was measured.
    assert callback.last_bias == measure_bias(model, cartpole(), episodes=3, seed=5 + 200)
    assert {"bias/standard_error", "bias/normalised", "bias/states"} <= set(lines[0])
    assert "bias/method" not in lines[0]


def test_statistics_of_vec_normalize_follow_the_training():
    training, own = (VecNormalize(make_vec_env("CartPole-v1", 2), gamma=0.9) for _ in range(2))
    model = DQN("MlpPolicy", training, **SMALL)
    callback = BiasCallback(own, eval_freq=48, n_eval_episodes=2)
    model.learn(96, callback=callback)
    assert (own.obs_rms.mean == training.obs_rms.mean).all()
    assert callback.last_bias.method == "continued"


def test_what_does_not_fit_is_told():
    environment = cartpole()
    model = DQN("MlpPolicy", environment, **SMALL)
    with pytest.raises(InputError, match="must not be the environment that the model trains in"):
        model.learn(10, callback=BiasCallback(environment))
    with pytest.raises(InputError, match="No Q-values were found in PPO"):
        PPO("MlpPolicy", "CartPole-v1", device="cpu").learn(10, callback=BiasCallback(environment))
    normalised = DQN("MlpPolicy", VecNormalize(make_vec_env("CartPole-v1")), **SMALL)
    with pytest.raises(InputError, match="wrap eval_env in VecNormalize, too"):
        normalised.learn(10, callback=BiasCallback(environment))
    raw = VecNormalize(make_vec_env("CartPole-v1"), norm_reward=False)
    with pytest.raises(InputError, match="norm_reward of eval_env's VecNormalize must be True, too"):
        normalised.learn(10, callback=BiasCallback(raw))
    with pytest.raises(InputTypeError, match="eval_env must be an Env or a VecEnv, not 'CartPole-v1'"):
        BiasCallback("CartPole-v1")
    with pytest.raises(InputError, match="eval_freq must be at least 1"):
        BiasCallback(environment, eval_freq=0)
