"""DQN of Stable-Baselines3 and of sbx (JAX), set up like ours: network, batch, updates, exploration."""

import os
from collections.abc import Callable
from typing import Any

from ebql.environments import make_environment


def sb3_dqn(environment: str, options: dict[str, Any]) -> Callable[[int], None]:
    """Return a function that trains SB3's DQN for a number of steps; it has already begun to learn."""
    from stable_baselines3 import DQN

    network: dict[str, Any] = {"net_arch": list(options["hidden"])}
    if options["torso"] == "minatar":
        network["features_extractor_class"] = _minatar_convolution()
    return _begun(DQN, environment, options, max_grad_norm=10, policy_kwargs=network, device="cpu")


def sbx_dqn(environment: str, options: dict[str, Any]) -> Callable[[int], None]:
    """Return the same for sbx's DQN, which is compiled by JAX and has no gradient clipping."""
    one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ.setdefault("XLA_FLAGS", one_thread)  # read when JAX is imported
    from sbx import DQN

    return _begun(DQN, environment, options, policy_kwargs={"net_arch": list(options["hidden"])})


def _begun(
    algorithm: Callable[..., Any], environment: str, options: dict[str, Any], **own: Any
) -> Callable[[int], None]:
    model = algorithm(
        "MlpPolicy",
        make_environment(environment),
        learning_rate=5e-4,
        buffer_size=options["replay_size"],
        learning_starts=options["learning_starts"],
        batch_size=options["batch_size"],
        train_freq=options["update_period"],
        gradient_steps=1,
        target_update_interval=options["target_period"],
        exploration_initial_eps=options["epsilon_start"],
        exploration_final_eps=options["epsilon_end"],
        seed=0,
        verbose=0,
        **own,
    )

    def advance(steps: int) -> None:
        model.learn(steps, reset_num_timesteps=False, log_interval=10**9)

    advance(options["learning_starts"] + 100)
    return advance


def _minatar_convolution() -> type:
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    class Convolution(BaseFeaturesExtractor):
        """The 3×3 convolution with 16 filters of the MinAtar preset, on (height, width, channels)."""

        def __init__(self, observation_space: Any) -> None:
            height, width, channels = observation_space.shape
            super().__init__(observation_space, features_dim=16 * (height - 2) * (width - 2))
            self.convolution = nn.Conv2d(channels, 16, 3)

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            images = observations.permute(0, 3, 1, 2)
            return torch.relu(self.convolution(images)).flatten(1)

    return Convolution
