"""DQN, double DQN and EBQL in ordinary PyTorch, as one would write them on a whiteboard. Read this first.

All three learn from transitions (s, a, r, d, s′), where d is the discount: γ, or 0 where the episode ended.
They differ only in the target y for Q(s, a):

    DQN          y = r + d · max_a′ Q⁻(s′, a′)                       one network selects and evaluates
    double DQN   a* = argmax_a′ Q(s′, a′)        y = r + d · Q⁻(s′, a*)
    EBQL         a* = argmax_a′ Q_k(s′, a′)      y_k = r + d · mean_{j≠k} Q⁻_j(s′, a*)

Q is the online network and Q⁻ its older copy, the target network. EBQL has K members, each with a target y_k
of its own: member k selects, the others evaluate (Peer et al., 2021, section 5).

The package trains with `learner.py`, which computes all members in one product, supports every rule, and is
fast. A test holds it to this file: equal gradients and equal weights after several updates.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class Batch(NamedTuple):
    """B transitions."""

    observations: Tensor
    """(B, n)"""
    actions: Tensor
    """(B,) of int64"""
    rewards: Tensor
    """(B,)"""
    discounts: Tensor
    """(B,): γ, or 0 where the episode ended"""
    next_observations: Tensor
    """(B, n)"""


class EnsembleNetwork(nn.Module):
    """K heads on one shared torso, or on one torso each. DQN is K = 1."""

    def __init__(
        self, n_inputs: int, hidden: int, n_actions: int, n_members: int, *, share_torso: bool = True
    ) -> None:
        super().__init__()
        n_torsos = 1 if share_torso else n_members
        self.torsos = nn.ModuleList(nn.Linear(n_inputs, hidden) for _ in range(n_torsos))
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_actions))
            for _ in range(n_members)
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Return the members' action values, (B, K, A)."""
        features = [functional.relu(torso(observations)) for torso in self.torsos]
        if len(features) < len(self.heads):
            features = features * len(self.heads)
        values = [head(own) for head, own in zip(self.heads, features, strict=True)]
        return torch.stack(values, dim=1)


# The three targets. Each takes the online and the target members' values of the next observation, both
# (B, K, A), and returns what every member bootstraps from, (B, K).


def dqn(online: Tensor, target: Tensor) -> Tensor:
    """The target network selects and evaluates: max_a′ Q⁻(s′, a′). Overestimates."""
    del online
    return target.max(dim=2).values


def double_dqn(online: Tensor, target: Tensor) -> Tensor:
    """The online network selects, the target network evaluates: Q⁻(s′, argmax_a′ Q(s′, a′))."""
    selected = online.argmax(dim=2, keepdim=True)
    return target.gather(2, selected).squeeze(2)


def ebql(online: Tensor, target: Tensor) -> Tensor:
    """Online member k selects, the mean of the OTHER target members evaluates."""
    n_members = online.shape[1]
    bootstrap = []
    for k in range(n_members):
        selected = online[:, k].argmax(dim=1)
        others = [j for j in range(n_members) if j != k]
        values = torch.stack([target[:, j].gather(1, selected[:, None]).squeeze(1) for j in others])
        bootstrap.append(values.mean(dim=0))
    return torch.stack(bootstrap, dim=1)


Rule = Callable[[Tensor, Tensor], Tensor]


class ReferenceLearner:
    """One rule, one network, one optimiser: everything that happens in an update."""

    def __init__(
        self,
        network: EnsembleNetwork,
        rule: Rule,
        *,
        learning_rate: float = 2.5e-4,
        eps: float = 1e-8,
        max_grad_norm: float = 10.0,
    ) -> None:
        self.online, self.rule, self.max_grad_norm = network, rule, max_grad_norm
        self.target = deepcopy(network).requires_grad_(False)
        self.optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate, eps=eps)

    def loss(self, batch: Batch) -> Tensor:
        """Return the Huber loss: the mean over the batch, summed over members."""
        with torch.no_grad():
            bootstrap = self.rule(self.online(batch.next_observations), self.target(batch.next_observations))
            y = batch.rewards[:, None] + batch.discounts[:, None] * bootstrap  # (B, K)
        values = self.online(batch.observations)  # (B, K, A)
        actions = batch.actions[:, None, None].expand(-1, values.shape[1], 1)
        predictions = values.gather(2, actions).squeeze(2)  # (B, K)
        return functional.smooth_l1_loss(predictions, y, reduction="none").mean(dim=0).sum()

    def update(self, batch: Batch) -> float:
        """Take one optimiser step; return the loss before it."""
        self.optimiser.zero_grad()
        loss = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.online.parameters(), self.max_grad_norm)
        self.optimiser.step()
        return loss.item()

    def synchronise(self) -> None:
        """Copy the online network to the target network; done every few thousand steps."""
        self.target.load_state_dict(self.online.state_dict())

    def act(self, observation: Sequence[float]) -> int:
        """Return the greedy action of the members' mean."""
        with torch.no_grad():
            return int(self.online(torch.tensor([observation])).mean(dim=1).argmax())
