"""What learns: the loss, the optimiser's step and the target members."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ebql.deep.config.base import AgentConfig, Ensemble
from ebql.deep.fast.optimisers import make_optimiser, norm_divisor
from ebql.deep.graphs import graphed
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.outputs import make_head
from ebql.deep.replay.ring import Array, Transitions
from ebql.deep.targets import RULES, Next
from ebql.errors import InputError, RunError

_CHANCE = 7  # the branch of the seed's sequence that nothing else draws from
_NONE = np.empty(0, np.float32)


class Rows(NamedTuple):
    """The columns of `Transitions` as tensors on the learner's device."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    discounts: Tensor
    next_observations: Tensor
    masks: Tensor
    weights: Tensor
    """(rows,) how much each counts; (0,) where all count alike."""
    drawn: Tensor
    """What the rule leaves to chance; (0,) for most."""


class Learnt(NamedTuple):
    """What an update found."""

    loss: float
    """The learning members' mean loss, rows weighted as they count."""
    errors: Tensor | None
    """(rows,) how wrong those who may learn from each row were: their mean |TD error|, or divergence.

    None unless rows are drawn by them.
    """
    logged: float | None
    """What the rule wants logged, if anything."""


class _Found(NamedTuple):
    """What an update computes before anything moves."""

    loss: Tensor
    gradients: list[Tensor]
    errors: Tensor
    logged: Tensor | None


def outputs_taken(outputs: Tensor, actions: Tensor) -> Tensor:
    """Return what is said, (rows, L[, Z]), of the actions taken (rows,), of outputs (rows, L, A[, Z])."""
    index = actions.view(-1, *[1] * (outputs.ndim - 1))
    return outputs.gather(2, index.expand(*outputs.shape[:2], 1, *outputs.shape[3:])).squeeze(2)


def _by_row(errors: Tensor, masks: Tensor, members: Tensor) -> Tensor:
    """Return the mean |error| (rows,), of errors (rows, L), over members whose masks (rows, K) are set.

    Where masks keep all of `members` (rows or 1, L) from learning, they speak for the others, unless nobody
    may learn: to such a row there is nothing to come back for.
    """
    sizes = errors.abs()
    if not masks.shape[1]:
        return sizes.mean(1)
    learns = masks.gather(1, members.expand(len(masks), -1))
    learns = learns | (~learns.any(1, keepdim=True) & masks.any(1, keepdim=True))
    return (sizes * learns).sum(1) / learns.sum(1).clamp(min=1)


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
    members: Tensor
    """(rows or 1, L): the numbers of the members that learn from each row."""
    own_rows: bool
    """Whether the rows are blocks, one a member."""


class Learner:
    """Online and target members, and the optimiser that moves the online ones.

    An update is one gradient step on the sum, over the members that learn, of their mean loss.
    """

    def __init__(self, config: AgentConfig, network: QNetwork) -> None:
        self.config, self.ensemble, self.rule = config, config.ensemble(), RULES[config.bootstrap_rule()]
        self.online, self.head = network, make_head(config, next(network.parameters()).device)
        self.target = _target_of(network, self.ensemble)
        self.updates = 0
        self._synchronisations = torch.zeros(1, dtype=torch.int64)
        self._parameters: list[Tensor] = list(network.parameters())
        self._target_parameters: list[Tensor] = list(self.target.parameters())
        self._n_torso = len(list(network.torso.parameters()))  # they come first
        parts = _parts(network, self.ensemble)
        self._optimiser = make_optimiser(config, [part.tensor for part in parts])
        self._turns = _turns(network, self.ensemble, config.batch_size, parts)
        self._graphs: dict[int, Callable[[Rows], _Found]] = {}
        self._chance = torch.Generator().manual_seed(_seed_of_chance(config.seed))
        self._hold()
        self.resample()

    @property
    def rows(self) -> int:
        """The transitions that one update asks for: a batch, or with independent data one for each."""
        return self.config.batch_size * (self.ensemble.size if self.own_rows else 1)

    @property
    def own_rows(self) -> bool:
        """Whether an update's rows are blocks, one a member."""
        return self._turns[0].own_rows

    def values(self, observations: Array) -> Tensor:
        """Return the online members' values (rows, K, A) of observations (rows, …), without noise."""
        with self.online.quiet():
            return self.acting_values(observations)

    def acting_values(self, observations: Array) -> Tensor:
        """Return the online members' values (rows, K, A), with the noise that explores if there is any."""
        outputs = self.online(torch.from_numpy(observations).to(self._parameters[0].device))
        return self.head.values(self.head.judgement(outputs))

    def update(self, batch: Transitions, weights: Array | None = None) -> Learnt:
        """Take one gradient step on `rows` transitions, of which each counts its weight (rows,)."""
        number = self.updates % len(self._turns)
        turn = self._turns[number]
        rows = self._on_device(turn, batch, weights)
        if rows.rewards.is_cuda:
            if number not in self._graphs:
                self._graphs[number] = graphed(partial(self._find, turn), rows)
            found = self._graphs[number](rows)
        else:
            found = self._find(turn, rows)
        mean_loss = found.loss.item() / (self.config.batch_size * turn.n_learning)
        if not math.isfinite(mean_loss):  # before the step, so that the weights stay good
            raise RunError(
                f"The loss became {mean_loss} at update {self.updates + 1}: "
                "try a lower learning-rate, or clip rewards with reward-clip."
            )
        divisor = None
        if self.config.max_grad_norm is not None:
            divisor = norm_divisor(found.gradients, self.config.max_grad_norm)
        self._optimiser.step(turn.parts, found.gradients, divisor)
        self.updates += 1
        self.resample()
        prioritized = self.config.prioritized
        errors = _by_row(found.errors, rows.masks, turn.members) if prioritized else None
        return Learnt(mean_loss, errors, None if found.logged is None else found.logged.item())

    def _find(self, turn: _Turn, rows: Rows) -> _Found:
        """Return the summed loss of those who learn, and the gradients of their parameters."""
        outputs, after = self._outputs_and_next(turn, rows)
        outputs = outputs_taken(outputs, rows.actions)
        with torch.no_grad():
            arguments = self.rule.arguments(self.config, after, rows.drawn)
            bootstrap = self.rule.bootstrap(after, *arguments)
            target = self.head.target(rows.rewards, rows.discounts, bootstrap)
            losses, slopes, errors = self.head.loss(outputs, target)
            weights = self._weights(turn, rows, after)
            if weights is not None:
                losses = losses * weights
                slopes = slopes * (weights if slopes.ndim == 2 else weights.unsqueeze(-1))
            slopes = slopes / self.config.batch_size
        gradients = list(torch.autograd.grad(outputs, turn.parameters, slopes))
        if self.ensemble.torso_gradient == "mean" and self._n_torso:
            torch._foreach_div_(gradients[: self._n_torso], float(turn.n_learning))
        logged = arguments[0].double().mean() if self.rule.logged else None
        return _Found(losses.sum(), gradients, errors, logged)

    def _outputs_and_next(self, turn: _Turn, rows: Rows) -> tuple[Tensor, Next]:
        """Return those who learn's outputs for the observations, and what members know of the next ones."""
        encoded, after = (self.online.spec.encode(x) for x in (rows.observations, rows.next_observations))
        selector = self.online if self.rule.selects_together else turn.online
        online = None
        if self.rule.selects_online and selector is turn.online and not turn.own_rows:
            outputs, online = selector.both_outputs(encoded, after)
        else:
            outputs = turn.online.outputs(encoded, own_rows=turn.own_rows)
        with torch.no_grad():
            if self.rule.selects_online and online is None:
                own_rows = turn.own_rows and not self.rule.selects_together
                online = selector.outputs(after, own_rows=own_rows)
            if online is not None:
                online = self.head.values(self.head.judgement(online))
            judged = self.head.judgement(self.target.outputs(after))
            return outputs, Next(online, self.head.values(judged), judged, turn.members)

    def _weights(self, turn: _Turn, rows: Rows, after: Next) -> Tensor | None:
        """Return how much each row counts for each member that learns, (rows, L); None: all alike."""
        weights = []
        if self.ensemble.data == "masked":
            every_row = torch.arange(len(rows.masks), device=rows.masks.device)[:, None]
            weights.append(rows.masks[every_row, turn.members].float())
        if len(rows.weights):
            weights.append(rows.weights[:, None].expand(-1, turn.members.shape[1]))
        if self.rule.backup_weight is not None:
            weights.append(self.rule.backup_weight(self.config, after))
        return reduce(torch.mul, weights) if weights else None

    def _on_device(self, turn: _Turn, batch: Transitions, weights: Array | None) -> Rows:
        device = self._parameters[0].device
        columns = (*batch, _NONE if weights is None else weights)
        drawn = torch.empty(0)
        if self.rule.draw is not None:
            n_rows, n_members = len(batch.actions), self.target.n_members
            drawn = self.rule.draw(self.config, turn.members, n_rows, n_members, self._chance)
        return Rows._make([*(torch.from_numpy(column).to(device) for column in columns), drawn.to(device)])

    def resample(self) -> None:
        """Draw new noise for online and target members, if they are noisy."""
        if self.online.is_noisy:
            self.online.resample(self._chance)
            self.target.resample(self._chance)

    def _hold(self) -> None:
        self.online.hold()
        self.target.pack(self.rows)
        if self.online.prior is not None:
            self.online.prior.pack(self.rows)

    def synchronise(self) -> None:
        """Copy the online members to the target members, or to the oldest of their snapshots."""
        with torch.no_grad():
            if n := self.ensemble.snapshots:
                oldest = int(self._synchronisations) % n
                snapshot = [parameter.chunk(n)[oldest] for parameter in self._target_parameters]
                torch._foreach_copy_(snapshot, self._parameters)
                self._synchronisations += 1
            else:
                torch._foreach_copy_(self._target_parameters, self._parameters)
        self.target.pack(self.rows)

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
        if "chance" in own:
            self._chance.set_state(own["chance"])
        self._hold()

    def _tensors(self) -> dict[str, Tensor]:
        """Return online and target members and the optimiser's memory by name, without copying."""
        tensors = {f"online.{name}": tensor for name, tensor in self.online.state_dict().items()}
        tensors |= {f"target.{name}": tensor for name, tensor in self.target.state_dict().items()}
        if self.online.prior is not None:
            tensors |= {f"prior.{name}": x for name, x in self.online.prior.state_dict().items()}
        if self.ensemble.snapshots:
            tensors["synchronisations"] = self._synchronisations
        if self.online.is_noisy or self.rule.draw is not None:
            tensors["chance"] = self._chance.get_state()
        return tensors | {f"optimiser.{name}": x for name, x in self._optimiser.state().items()}


def _target_of(network: QNetwork, ensemble: Ensemble) -> QNetwork:
    """Return the target members, as yet equal to the online ones: one each, or each snapshot of the one."""
    if ensemble.snapshots:
        return network.copies(ensemble.snapshots).requires_grad_(False)
    target = deepcopy(network).requires_grad_(False)
    if network.prior is not None:  # the same one, not a copy
        target.add_prior(network.prior, ensemble.prior_scale)
    return target


def _seed_of_chance(seed: int) -> int:
    """Return the seed of what rules and noise draw, apart from that of the first weights."""
    return int(np.random.SeedSequence(seed, spawn_key=(_CHANCE,)).generate_state(1)[0])


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
        own_rows, members = ensemble.data == "independent", torch.arange(ensemble.size, device=device)[None]
        if own_rows:
            members = members.flatten().repeat_interleave(batch_size).unsqueeze(1)
        everything = range(len(parts))
        return [_Turn(network, list(network.parameters()), everything, ensemble.size, members, own_rows)]
    turns = []
    for k in range(ensemble.size):
        online, member = network.member(k), torch.tensor([[k]], device=device)
        chosen = [i for i, part in enumerate(parts) if part.owner in (None, k)]
        turns.append(_Turn(online, list(online.parameters()), chosen, 1, member, own_rows=False))
    return turns
