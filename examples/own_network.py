"""A network of your own: an encoder below the members' heads.

python own_network.py [STEPS]
"""

import sys

import torch
from gymnasium.spaces import Box
from torch import Tensor, nn

from ebql import EBQL


class Fourier(nn.Module):
    """Random Fourier features, which do not learn, and a layer that mixes them."""

    def __init__(self, observation_space: Box, n_waves: int = 32) -> None:
        super().__init__()
        (n_inputs,) = observation_space.shape
        self.register_buffer("frequencies", torch.randn(n_inputs, n_waves))
        self.mix = nn.Linear(2 * n_waves, 64)

    def forward(self, observations: Tensor) -> Tensor:
        """Map observations (rows, inputs) to features (rows, 64)."""
        angles = observations @ self.frequencies
        return torch.relu(self.mix(torch.cat([angles.sin(), angles.cos()], -1)))


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    agent = EBQL("CartPole-v1", encoder=Fourier, hidden=(64,), layer_norm=True, seed=0).learn(steps)
    path = agent.save("fourier")
    again = EBQL.load(path, encoder=Fourier)  # the file holds weights, not code
    print(f"mean return {again.evaluate(5, seed=0).mean:.1f}")
