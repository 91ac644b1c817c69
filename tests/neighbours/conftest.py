"""Worlds whose values are known on paper, for agents of other libraries."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

torch.set_num_threads(1)


class Ending(gymnasium.Env):
    """One state: every step pays 1 and ends the episode with the probability `end`."""

    observation_space = Box(0, 1, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self, end=0.05):
        self.end = end

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), 1.0, bool(self.np_random.random() < self.end), False, {}

    def value(self, discount):
        return 1 / (1 - discount * (1 - self.end))


@pytest.fixture
def ending():
    return Ending


@pytest.fixture
def predict_constantly():
    """Return a function that makes a Stable-Baselines3 network say one value for every action."""

    def constant(network, value):
        with torch.no_grad():
            last = list(network.modules())[-1]
            assert isinstance(last, torch.nn.Linear)
            last.weight.zero_()
            last.bias.copy_(torch.as_tensor(value, dtype=torch.float32).expand_as(last.bias))

    return constant
