"""Policies of Stable-Baselines3 with K members: its own features, and K networks of its own form."""

from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import (
    CombinedExtractor,
    NatureCNN,
    create_mlp,
)
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import nn

ENSEMBLE_SIZE = 5


class EnsembleQNetwork(QNetwork):
    """K Q-networks on shared features. Called as a network, it gives the members' mean."""

    def __init__(self, *arguments: Any, ensemble_size: int = ENSEMBLE_SIZE, **options: Any) -> None:
        super().__init__(*arguments, **options)
        del self.q_net  # the single network of the base class
        self.ensemble_size = ensemble_size
        n_actions = int(self.action_space.n)
        self.networks = nn.ModuleList(
            nn.Sequential(*create_mlp(self.features_dim, n_actions, self.net_arch, self.activation_fn))
            for _ in range(ensemble_size)
        )

    def members(self, obs: PyTorchObs) -> torch.Tensor:
        """Return the members' action values, (rows, K, A)."""
        features = self.extract_features(obs, self.features_extractor)
        return torch.stack([network(features) for network in self.networks], 1)

    def forward(self, obs: PyTorchObs) -> torch.Tensor:
        """Return the mean of the members' action values, (rows, A)."""
        return self.members(obs).mean(1)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "ensemble_size": self.ensemble_size}


class EnsemblePolicy(DQNPolicy):
    """DQN's policy with K members, which share the features extractor; each has its own `net_arch`.

    >>> from ebql.sb3 import EBQL
    >>> class Wide(EnsemblePolicy):
    ...     def __init__(self, *arguments, **options):
    ...         super().__init__(*arguments, **{"net_arch": [256], **options})
    >>> EBQL(Wide, "CartPole-v1", ensemble_size=3).policy.net_arch
    [256]
    """

    q_net: EnsembleQNetwork
    q_net_target: EnsembleQNetwork

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        *arguments: Any,
        ensemble_size: int = ENSEMBLE_SIZE,
        **options: Any,
    ) -> None:
        self.ensemble_size = ensemble_size
        super().__init__(observation_space, action_space, lr_schedule, *arguments, **options)

    def make_q_net(self) -> EnsembleQNetwork:
        """Return K freshly initialised members."""
        arguments = self._update_features_extractor(self.net_args, features_extractor=None)
        return EnsembleQNetwork(**arguments, ensemble_size=self.ensemble_size).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), "ensemble_size": self.ensemble_size}


class EnsembleCnnPolicy(EnsemblePolicy):
    """The policy for images: members share `NatureCNN` and own the layers above it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"features_extractor_class": NatureCNN, **options})


class EnsembleMultiInputPolicy(EnsemblePolicy):
    """The policy for dictionaries: members share `CombinedExtractor` and own the layers above it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"features_extractor_class": CombinedExtractor, **options})


POLICIES: dict[str, type[BasePolicy]] = {
    "MlpPolicy": EnsemblePolicy,
    "CnnPolicy": EnsembleCnnPolicy,
    "MultiInputPolicy": EnsembleMultiInputPolicy,
}
"""The policies by the names of Stable-Baselines3."""
