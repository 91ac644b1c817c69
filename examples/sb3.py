"""EBQL inside Stable-Baselines3: its callbacks, its files, and the bias in its log.

python sb3.py [STEPS]
"""

import sys

import gymnasium
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from ebql.sb3 import EBQL, BiasCallback

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
model = EBQL(
    "MlpPolicy",
    make_vec_env("CartPole-v1", n_envs=4, seed=0),
    ensemble_size=5,
    learning_rate=1e-3,
    learning_starts=100,
    target_update_interval=500,
    seed=0,
    device="cpu",
)
period = max(steps // 8, 1)  # of calls, each of which is a step in all four environments
bias = BiasCallback(gymnasium.make("CartPole-v1"), eval_freq=period, n_eval_episodes=5)
score = EvalCallback(make_vec_env("CartPole-v1"), eval_freq=period, n_eval_episodes=5, verbose=0)
model.learn(steps, callback=[bias, score])
if bias.last_bias is not None:
    print(f"the bias during training: {bias.last_bias.mean:+.2f}")

model.save("ebql_cartpole")
loaded = EBQL.load("ebql_cartpole", device="cpu")
mean, deviation = evaluate_policy(loaded, make_vec_env("CartPole-v1"), n_eval_episodes=5)
print(f"K = {loaded.ensemble_size}: return {mean:.0f} ± {deviation:.0f}")
