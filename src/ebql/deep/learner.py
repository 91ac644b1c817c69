"""What learns: the loss, the optimiser's step and the target members."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ebql.deep.config import AgentConfig, Ensemble
from ebql.deep.graphs import graphed
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


class _Part(NamedTuple):
    """A tensor that the optimiser moves: a whole parameter, or the part of it that one member owns."""

    tensor: Tensor
    owner: int | None
    """The member that owns the part; None if it moves at every update."""


class _Turn(NamedTuple):
    """Who learns at an update; nobody else's predictions or gradients are computed."""

    online: QNetwork
    """The members that learn: all, or one as a network of its own in the same memory."""
    parameters: list[Tensor]
    parts: Sequence[int]
    """The optimiser's indices of the parameters."""
    n_learning: int
    learners: Tensor | None
    """(rows or 1, 1): the one member that learns from each row; None: all members do."""
    own_rows: bool
    """Whether the rows are blocks, one a member."""


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
        parts = _parts(network, self.ensemble)
        self._optimiser = make_optimiser(config, [part.tensor for part in parts])
        self._turns = _turns(network, self.ensemble, config.batch_size, parts)
        self._graphs: dict[int, Callable[[Rows], tuple[Tensor, list[Tensor]]]] = {}

    @property
    def rows(self) -> int:
        """The transitions that one update asks for: a batch, or with independent data one for each."""
        return self.config.batch_size * (self.ensemble.size if self._turns[0].own_rows else 1)

    def values(self, observations: Array) -> Tensor:
        """Return the online members' values (rows, K, A) of observations (rows, …)."""
        values: Tensor = self.online(torch.from_numpy(observations).to(self._parameters[0].device))
        return values

    def update(self, batch: Transitions) -> float:
        """Take one gradient step on `rows` transitions; return the learning members' mean loss."""
        number = self.updates % len(self._turns)
        turn, rows = self._turns[number], self._on_device(batch)
        if rows.rewards.is_cuda:
            if number not in self._graphs:
                self._graphs[number] = graphed(partial(self._gradients, turn), rows)
            loss, gradients = self._graphs[number](rows)
        else:
            loss, gradients = self._gradients(turn, rows)
        mean_loss = loss.item() / (self.config.batch_size * turn.n_learning)
        if not math.isfinite(mean_loss):  # before the step, so that the weights stay good
            raise RunError(
                f"The loss became {mean_loss} at update {self.updates + 1}: "
                "try a lower learning-rate, or clip rewards with reward-clip."
            )
        divisor = None
        if self.config.max_grad_norm is not None:
            divisor = norm_divisor(gradients, self.config.max_grad_norm)
        self._optimiser.step(turn.parts, gradients, divisor)
        self.updates += 1
        return mean_loss

    def _gradients(self, turn: _Turn, rows: Rows) -> tuple[Tensor, list[Tensor]]:
        """Return the summed loss of those who learn, and the gradients of their parameters."""
        online = turn.online
        predictions = values_taken(online(rows.observations, own_rows=turn.own_rows), rows.actions)
        with torch.no_grad():
            targets = self._targets(turn, rows)
            losses, slopes = loss_and_slope(predictions - targets, self.config.loss)
            if self.ensemble.data == "masked":
                weights = _of_learners(turn, rows.masks)
                losses, slopes = losses * weights, slopes * weights
            slopes = slopes / self.config.batch_size
        gradients = list(torch.autograd.grad(predictions, turn.parameters, slopes))
        if self.ensemble.torso_gradient == "mean" and self._n_torso:
            torch._foreach_div_(gradients[: self._n_torso], float(turn.n_learning))
        return losses.sum(), gradients

    def _targets(self, turn: _Turn, rows: Rows) -> Tensor:
        """Return what the learning members should have predicted, of the predictions' shape.

        A rule gives every member's target and reads, for member k's, of the online values k's alone: where
        a row has one learner, its values may stand in for those of members whose targets nobody wants.
        """
        encoded = self.target.spec.encode(rows.next_observations)
        q_next_online, q_next_target = None, self.target.values(encoded)
        if self.rule.selects_online:
            q_next_online = turn.online.values(encoded, own_rows=turn.own_rows).expand_as(q_next_target)
        return _of_learners(
            turn, self.rule.targets(q_next_online, q_next_target, rows.rewards, rows.discounts)
        )

    def _on_device(self, batch: Transitions) -> Rows:
        device = self._parameters[0].device
        return Rows(*(torch.from_numpy(column).to(device) for column in batch))

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


def _of_learners(turn: _Turn, columns: Tensor) -> Tensor:
    """Pick from columns (rows, K) those of the members that learn from each row."""
    if turn.learners is None:
        return columns
    return columns.gather(1, turn.learners.expand(len(columns), 1))


def _parts(network: QNetwork, ensemble: Ensemble) -> list[_Part]:
    """Return what the optimiser moves: whole parameters, or in a cycle each member's own parts.

    A member whose turn it isn't must stand still; a zero gradient would not do, since momentum goes on.
    """
    parts = []
    for name, parameter in network.named_parameters():
        shared = ensemble.members == "all" or (ensemble.share_torso and name.startswith("torso."))
        if shared:
            parts.append(_Part(parameter.detach(), None))
        else:
            chunks = enumerate(parameter.detach().chunk(ensemble.size))
            parts += [_Part(chunk, owner) for owner, chunk in chunks]
    return parts


def _turns(network: QNetwork, ensemble: Ensemble, batch_size: int, parts: list[_Part]) -> list[_Turn]:
    """Return the updates that follow each other in a circle: one of all members, or one of each."""
    device = parts[0].tensor.device
    if ensemble.members == "all":
        own_rows, learners = ensemble.data == "independent", None
        if own_rows:
            learners = torch.arange(ensemble.size, device=device).repeat_interleave(batch_size).unsqueeze(1)
        everything = range(len(parts))
        return [_Turn(network, list(network.parameters()), everything, ensemble.size, learners, own_rows)]
    turns = []
    for k in range(ensemble.size):
        online, learner = network.member(k), torch.tensor([[k]], device=device)
        chosen = [i for i, part in enumerate(parts) if part.owner in (None, k)]
        turns.append(_Turn(online, list(online.parameters()), chosen, 1, learner, own_rows=False))
    return turns
