"""What learns: the loss, the optimiser's step and the target members."""

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor

from ebql.deep.config import AgentConfig, Ensemble
from ebql.deep.networks import QNetwork
from ebql.deep.optimisers import make_optimiser, norm_divisor
from ebql.deep.replay import Array, Transitions
from ebql.deep.targets import RULES
from ebql.errors import InputError, RunError


class Rows(NamedTuple):
    """The columns of `Transitions` as tensors on the learner's device."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    discounts: Tensor
    next_observations: Tensor
    masks: Tensor


def values_taken(q: Tensor, actions: Tensor) -> Tensor:
    """Return each member's value (batch, K) of the actions taken (batch,), from values (batch, K, A)."""
    return q.gather(-1, actions.view(-1, 1, 1).expand(-1, q.shape[1], 1)).squeeze(-1)


def loss_and_slope(errors: Tensor, loss: str) -> tuple[Tensor, Tensor]:
    """Return the loss of each TD error (prediction − target) and its derivative, both of errors' shape."""
    if loss == "mse":
        return errors.square(), 2 * errors
    clipped = errors.clamp(-1, 1)  # Huber with δ = 1: Mnih et al.'s error clipping
    return clipped * (errors - 0.5 * clipped), clipped


def greedy_actions(q: Tensor) -> Tensor:
    """Return the actions (rows,) that the members' mean value (rows, K, A) prefers."""
    return q.mean(1).argmax(-1) if q.shape[1] > 1 else q[:, 0].argmax(-1)


def learning_weights(ensemble: Ensemble, masks: Tensor, batch_size: int, member: int) -> Tensor | None:
    """Return who learns from which row, (rows, K) or one that broadcasts to it; None: everybody from all.

    `masks` (rows, K) come with the transitions of masked data; `member` is whose turn it is in a cycle.
    """
    if ensemble.members == "all" and ensemble.data == "shared":
        return None
    everybody = torch.eye(ensemble.size, device=masks.device)
    if ensemble.members == "cycle":
        turn = everybody[member : member + 1]
        return turn * masks if ensemble.data == "masked" else turn
    if ensemble.data == "masked":
        return masks.float()
    return everybody.repeat_interleave(batch_size, 0)


class _Part(NamedTuple):
    """A tensor that the optimiser moves: a whole parameter, or the part of it that one member owns."""

    tensor: Tensor
    parameter: int
    """The index of the parameter."""
    owner: int | None
    """The member that owns the part; None if it moves at every update."""


class Learner:
    """Online and target members, and the optimiser that moves the online ones.

    An update is one gradient step on the sum, over the members that learn, of their mean loss.
    """

    def __init__(self, config: AgentConfig, network: QNetwork) -> None:
        self.config, self.ensemble, self.rule = config, config.ensemble(), RULES[config.rule]
        self.online = network
        self.target = deepcopy(network).requires_grad_(False)
        self.updates = 0
        self._parameters: list[Tensor] = list(network.parameters())
        self._target_parameters: list[Tensor] = list(self.target.parameters())
        self._n_torso = len(list(network.torso.parameters()))  # they come first
        self._n_learning = 1 if self.ensemble.members == "cycle" else self.ensemble.size
        self._parts = _parts(network, self.ensemble)
        self._everything = range(len(self._parts))
        self._optimiser = make_optimiser(config, [part.tensor for part in self._parts])

    @property
    def rows(self) -> int:
        """The transitions that one update asks for: a batch, or with independent data one for each."""
        independent = self.ensemble.data == "independent" and self.ensemble.members == "all"
        return self.config.batch_size * (self.ensemble.size if independent else 1)

    def values(self, observations: Array) -> Tensor:
        """Return the online members' values (rows, K, A) of observations (rows, …)."""
        values: Tensor = self.online(torch.from_numpy(observations).to(self._parameters[0].device))
        return values

    def update(self, batch: Transitions) -> float:
        """Take one gradient step on `rows` transitions; return the learning members' mean loss."""
        rows = self._on_device(batch)
        predictions = values_taken(self.online(rows.observations), rows.actions)
        turn = self.updates % self.ensemble.size
        with torch.no_grad():
            q_next_target = self.target(rows.next_observations)
            q_next_online = self.online(rows.next_observations) if self.rule.selects_online else None
            targets = self.rule.targets(q_next_online, q_next_target, rows.rewards, rows.discounts)
            losses, slopes = loss_and_slope(predictions - targets, self.config.loss)
            weights = learning_weights(self.ensemble, rows.masks, self.config.batch_size, turn)
            if weights is not None:
                losses, slopes = losses * weights, slopes * weights
        mean_loss = losses.sum().item() / (self.config.batch_size * self._n_learning)
        if not math.isfinite(mean_loss):  # before the step, so that the weights stay good
            raise RunError(
                f"The loss became {mean_loss} at update {self.updates + 1}: "
                "try a lower learning-rate, or clip rewards with reward-clip."
            )
        self._step(predictions, slopes / self.config.batch_size, turn)
        self.updates += 1
        return mean_loss

    def _on_device(self, batch: Transitions) -> Rows:
        device = self._parameters[0].device
        return Rows(*(torch.from_numpy(column).to(device) for column in batch))

    def _step(self, predictions: Tensor, slopes: Tensor, turn: int) -> None:
        """Move the parameters; `slopes` (batch, K) are the loss's derivatives by the predictions."""
        gradients = list(torch.autograd.grad(predictions, self._parameters, slopes))
        if self.ensemble.torso_gradient == "mean" and self._n_torso:
            torch._foreach_div_(gradients[: self._n_torso], float(self._n_learning))
        divisor = None
        if self.config.max_grad_norm is not None:
            divisor = norm_divisor(gradients, self.config.max_grad_norm)
        if self.ensemble.members == "cycle":
            chosen = [i for i, part in enumerate(self._parts) if part.owner in (None, turn)]
            gradients = [self._part_gradient(self._parts[i], gradients) for i in chosen]
            self._optimiser.step(chosen, gradients, divisor)
        else:
            self._optimiser.step(self._everything, gradients, divisor)

    def _part_gradient(self, part: _Part, gradients: list[Tensor]) -> Tensor:
        gradient = gradients[part.parameter]
        return gradient if part.owner is None else gradient.chunk(self.ensemble.size)[part.owner]

    def synchronise(self) -> None:
        """Copy the online members to the target members."""
        with torch.no_grad():
            torch._foreach_copy_(self._target_parameters, self._parameters)

    def state(self) -> dict[str, Array]:
        """Return online and target members and the optimiser's memory, without copying."""
        tensors = self._tensors()
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise RunError(f"A weight is not a finite number after update {self.updates}.")
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Become the learner that `state` was taken from, the count of updates apart.

        A state of another network or optimiser is refused before anything has changed.
        """
        own = self._tensors()
        for name in sorted(own.keys() | state.keys()):
            here = tuple(own[name].shape) if name in own else "nothing"
            saved = state[name].shape if name in state else "nothing"
            if here != saved:
                raise InputError(
                    f"The saved weights do not fit the options: {name} is {saved} there and {here} here."
                )
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(torch.from_numpy(state[name].copy()))

    def _tensors(self) -> dict[str, Tensor]:
        """Return online and target members and the optimiser's memory by name, without copying."""
        tensors = {f"online.{name}": tensor for name, tensor in self.online.state_dict().items()}
        tensors |= {f"target.{name}": tensor for name, tensor in self.target.state_dict().items()}
        return tensors | {f"optimiser.{name}": x for name, x in self._optimiser.state().items()}


def _parts(network: QNetwork, ensemble: Ensemble) -> list[_Part]:
    """Return what the optimiser moves: whole parameters, or in a cycle each member's own parts.

    A member whose turn it isn't must stand still; a zero gradient would not do, since momentum goes on.
    """
    parts = []
    for index, (name, parameter) in enumerate(network.named_parameters()):
        shared = ensemble.members == "all" or (ensemble.share_torso and name.startswith("torso."))
        if shared:
            parts.append(_Part(parameter.detach(), index, None))
        else:
            chunks = enumerate(parameter.detach().chunk(ensemble.size))
            parts += [_Part(chunk, index, owner) for owner, chunk in chunks]
    return parts
