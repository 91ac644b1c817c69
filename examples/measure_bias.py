"""The bias of an agent of another library: what DQN of Stable-Baselines3 expects, and what it earns.

python measure_bias.py [STEPS]
"""

import sys
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN

import ebql

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000

# A model of Stable-Baselines3: its Q-values and its discount are found.
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=100, seed=0, device="cpu").learn(steps)
bias = ebql.measure_bias(model, "CartPole-v1", episodes=5)
print(f"SB3's DQN expects {bias.value:.1f} and earns {bias.discounted_return:.1f}. {bias.explanation}")

# A network as CleanRL has it: it is played greedily.
network = torch.nn.Sequential(torch.nn.Linear(4, 120), torch.nn.ReLU(), torch.nn.Linear(120, 2))
bias = ebql.measure_bias(network, "CartPole-v1", discount=0.99, episodes=5)
print(f"An untrained network expects {bias.value:.1f} and earns {bias.discounted_return:.1f}.")


# Anything else: a function that acts, and a function that says what it expects.
def lean(observations: Any) -> Any:
    """Push the cart to the side to which the pole falls."""
    return (observations[:, 2] + observations[:, 3] > 0).astype(int)


def guess(observations: Any) -> Any:
    """Expect one hundred steps, whatever happens: Σ γⁱ over 100 steps."""
    return np.full((len(observations), 2), (1 - 0.99**100) / (1 - 0.99))


bias = ebql.measure_bias(lean, "CartPole-v1", q_values=guess, discount=0.99, episodes=5)
print(f"A rule of thumb: bias {bias.mean:+.1f} ± {bias.standard_error:.1f}.")
