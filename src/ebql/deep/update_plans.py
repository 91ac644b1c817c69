"""Which members an update concerns: the parameters, the optimiser's parts and the rows of each."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ebql.deep.config.base import Ensemble
from ebql.deep.networks.ensemble import QNetwork


class UpdatePlan(NamedTuple):
    """Which members learn at an update; no other member's predictions or gradients are computed."""

    online: QNetwork
    """The members that learn: all, or one as a network of its own in the same memory."""
    parameters: list[Tensor]
    parts: Sequence[int]
    """The optimiser's indices of the parameters."""
    n_learning: int
    members: Tensor
    """(rows or 1, L): the members that learn from each row."""
    own_rows: bool
    """Whether the rows are blocks, one for each member."""


class Part(NamedTuple):
    """A tensor that the optimiser moves: a whole parameter, or one member's part of it."""

    tensor: Tensor
    owner: int | None
    """The member that owns the part; None if every update moves it."""


def optimised_parts(network: QNetwork, ensemble: Ensemble) -> list[Part]:
    """Return what the optimiser moves: whole parameters, or in a cycle each member's own parts.

    A member that does not learn must not move. A zero gradient would not do, because of momentum.
    """
    parts = []
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:  # the user's module keeps it fixed
            continue
        shared = ensemble.members == "all" or (ensemble.share_torso and name.startswith("torso."))
        if shared:
            parts.append(Part(parameter.detach(), None))
        elif (owner := network.owner(name)) is not None:
            parts.append(Part(parameter.detach(), owner))
        else:
            chunks = enumerate(parameter.detach().chunk(ensemble.size))
            parts += [Part(chunk, owner) for owner, chunk in chunks]
    return parts


def update_plans(
    network: QNetwork, ensemble: Ensemble, batch_size: int, parts: list[Part]
) -> list[UpdatePlan]:
    """Return the plans of successive updates: one for all members, or one for each in turn."""
    device = parts[0].tensor.device
    if ensemble.members == "all":
        own_rows, members = ensemble.data == "independent", torch.arange(ensemble.size, device=device)[None]
        if own_rows:
            members = members.flatten().repeat_interleave(batch_size).unsqueeze(1)
        everything = range(len(parts))
        return [UpdatePlan(network, learnt_parameters(network), everything, ensemble.size, members, own_rows)]
    plans = []
    for k in range(ensemble.size):
        online, member = network.member(k), torch.tensor([[k]], device=device)
        chosen = [i for i, part in enumerate(parts) if part.owner in (None, k)]
        plans.append(UpdatePlan(online, learnt_parameters(online), chosen, 1, member, own_rows=False))
    return plans


def learnt_parameters(module: nn.Module) -> list[Tensor]:
    """Return the parameters that learn: all except those that the user's own module keeps fixed."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]
