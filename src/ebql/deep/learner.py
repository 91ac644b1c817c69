"""The learner: the loss, one optimiser step, and the target members.

`reference.py` has the same update in plain PyTorch, as one would write it on a whiteboard. A test holds this
learner to it.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ebql.deep.config.base import AgentConfig, Ensemble
from ebql.deep.evaluation.diversity import Diversity, diversity
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.outputs import QuantileOutput, make_output
from ebql.deep.optimisers import make_optimiser, norm_divisor
from ebql.deep.replay.ring import Array, Transitions
from ebql.deep.targets import Next, rule_named
from ebql.deep.update_plans import UpdatePlan, learnt_parameters, optimised_parts, update_plans
from ebql.errors import InputError, RunError

_RULES, _MODULES = 7, 8
"""Branches of the seed's sequence: for noise and rules that sample, and for the user's modules."""


class UpdateResult(NamedTuple):
    """What an update reports."""

    loss: float
    """The mean loss of the members that learn, with rows weighted."""
    errors: Tensor | None
    """(rows,) the mean |TD error| or divergence of the members that may learn from each row.

    None without prioritised replay.
    """
    logged: float | None
    """What the rule logs, if anything."""
    diversity: Diversity | None
    """The TD errors on own and on the others' transitions, if they are logged."""


class Fractions(NamedTuple):
    """The fractions of implicit quantiles in an update, drawn independently; all None for other outputs.

    All members share them, so that quantiles of equal fractions are averaged.
    """

    learnt: Tensor | None = None
    """τ (rows, N): where the outputs for the actions taken are computed."""
    target: Tensor | None = None
    """τ′ (rows, N′): where target members evaluate the next action."""
    policy: Tensor | None = None
    """τ̃ (rows, K): what online and target members average over to select the next action."""


NO_FRACTIONS = Fractions()


class _Gradients(NamedTuple):
    """What an update computes before it changes anything."""

    loss: Tensor
    gradients: list[Tensor]
    errors: Tensor
    logged: Tensor | None
    diversity: Diversity | None


class Learner:
    """Online and target members, and the optimiser of the online ones.

    An update is one gradient step on the sum, over the members that learn, of their mean loss.
    """

    def __init__(self, config: AgentConfig, network: QNetwork) -> None:
        self.config, self.ensemble, self.rule = config, config.ensemble(), rule_named(config.bootstrap_rule())
        self.online, self.output = network, make_output(config, next(network.parameters()).device)
        self.target = _target_of(network, self.ensemble)
        self.updates = 0
        self._synchronisations = torch.zeros(1, dtype=torch.int64)
        self._subset_size: Tensor | None = None
        if self.rule.steer is not None:
            options: Any = config  # of an agent whose rule is steered
            self._subset_size = torch.tensor([options.subset_size])
        self._parameters: list[Tensor] = list(network.parameters())
        n_snapshots = self.ensemble.snapshots
        copies = [self.target.member(i) for i in range(n_snapshots)] if n_snapshots else [self.target]
        self._copies: list[list[Tensor]] = [list(copy.parameters()) for copy in copies]
        self._buffers_of_copies = [_own_buffers(copy) for copy in copies]
        self._n_torso = len(learnt_parameters(network.torso))  # they come first
        self._module_rng: Tensor | None = None
        if network.own is not None:
            self._module_rng = _generator(config.seed, _MODULES).get_state()
        parts = optimised_parts(network, self.ensemble)
        self._optimiser = make_optimiser(config, [part.tensor for part in parts])
        self._plans = update_plans(network, self.ensemble, config.batch_size, parts)
        self._generator = _generator(config.seed, _RULES)
        self._precision: AbstractContextManager[Any] = nullcontext()
        if config.precision == "bfloat16":
            # In older PyTorch, the cache drops the gradients of a layer that a user's module first calls
            # without them.
            device, cache = self._parameters[0].device.type, network.own is None
            self._precision = torch.autocast(device, torch.bfloat16, cache_enabled=cache)
        self._prepare_weights()
        self.resample()

    @property
    def rows(self) -> int:
        """The transitions of one update: a batch, or a batch for each member with independent data."""
        return self.config.batch_size * (self.ensemble.size if self.own_rows else 1)

    @property
    def own_rows(self) -> bool:
        """Whether an update's rows are blocks, one for each member."""
        return self._plans[0].own_rows

    def values(self, observations: Array) -> Tensor:
        """Return the online members' values (rows, K, A) of observations (rows, …), without noise."""
        with self.online.without_noise():
            return self.acting_values(observations)

    def acting_values(self, observations: Array) -> Tensor:
        """Return the online members' values (rows, K, A), with noise if the network is noisy."""
        outputs = self.online(torch.from_numpy(observations).to(self._parameters[0].device))
        return self.output.values(self.output.predictions(outputs))

    def update(self, batch: Transitions[Array]) -> UpdateResult:
        """Take one gradient step on `rows` transitions."""
        plan = self._plans[self.updates % len(self._plans)]
        device = self._parameters[0].device
        on_device = Transitions(*(torch.from_numpy(column).to(device) for column in batch))
        computed = self._compute(plan, on_device, self._samples(plan, len(batch.actions)))
        mean_loss = computed.loss.item() / (self.config.batch_size * plan.n_learning)
        if not math.isfinite(mean_loss):  # before the step, so that the weights stay intact
            raise RunError(
                f"The loss became {mean_loss} at update {self.updates + 1}: "
                "try a lower learning-rate, or clip rewards with reward-clip."
            )
        divisor = None
        if self.config.max_grad_norm is not None:
            divisor = norm_divisor(computed.gradients, self.config.max_grad_norm)
        self._optimiser.step(plan.parts, computed.gradients, divisor)
        self.updates += 1
        self.resample()
        errors = None
        if self.config.prioritized:
            errors = errors_by_row(computed.errors, on_device.masks, plan.members)
        logged = None if computed.logged is None else computed.logged.item()
        return UpdateResult(mean_loss, errors, logged, computed.diversity)

    def _compute(self, plan: UpdatePlan, batch: Transitions[Tensor], samples: Tensor) -> _Gradients:
        """Return the summed loss of the members that learn, and the gradients of their parameters."""
        fractions = self._draw_fractions(len(batch.actions))
        output = self.output if fractions.learnt is None else QuantileOutput(fractions.learnt)
        with self._randomness_of_modules():
            outputs, after = self._outputs_and_next(plan, batch, fractions)
        of_all_actions, outputs = outputs, outputs_taken(outputs, batch.actions)
        with torch.no_grad():
            arguments = self.rule.arguments(self.config, after, samples)
            bootstrap = self.rule.bootstrap(after, *arguments)
            _require_shape(bootstrap, (*outputs.shape[:2], *after.predictions.shape[3:]))
            target = output.target(batch.rewards, batch.discounts, bootstrap)
            losses, slopes, errors = output.loss(outputs, target)
            weights = self._row_weights(plan, batch, after)
            if weights is not None:
                losses = losses * weights
                slopes = slopes * (weights if slopes.ndim == 2 else weights.unsqueeze(-1))
            slopes = slopes / self.config.batch_size
        # A module of the user's may have parameters that its output does not depend on.
        may_be_unused = self.online.own is not None
        gradients = list(
            torch.autograd.grad(
                outputs,
                plan.parameters,
                slopes,
                allow_unused=may_be_unused,
                materialize_grads=may_be_unused,
            )
        )
        if self.ensemble.torso_gradient == "mean":
            for gradient in gradients[: self._n_torso]:
                gradient.div_(float(plan.n_learning))
        logged = arguments[0].double().mean() if self.rule.logged else None
        measured = None
        if self.ensemble.log_diversity:
            values = output.values(output.predictions(of_all_actions.detach()))
            measured = diversity(values, batch.actions, errors)
        return _Gradients(losses.sum(), gradients, errors, logged, measured)

    def _outputs_and_next(
        self, plan: UpdatePlan, batch: Transitions[Tensor], fractions: Fractions = NO_FRACTIONS
    ) -> tuple[Tensor, Next]:
        """Return the learning members' outputs for the observations, and what rules know of the next ones."""
        encoded, after = (self.online.encode(x) for x in (batch.observations, batch.next_observations))
        selector = self.online if self.rule.selects_together else plan.online
        online = selecting = None
        is_implicit = fractions.learnt is not None
        with self._precision:
            if self.rule.selects_online and selector is plan.online and not (plan.own_rows or is_implicit):
                outputs, online = selector.both_outputs(encoded, after)
            else:
                outputs = plan.online.outputs(encoded, own_rows=plan.own_rows, fractions=fractions.learnt)
            with torch.no_grad():
                if self.rule.selects_online and online is None:
                    own_rows = plan.own_rows and not self.rule.selects_together
                    online = selector.outputs(after, own_rows=own_rows, fractions=fractions.policy)
                evaluating = self.target.outputs(after, fractions=fractions.target)
                if is_implicit:
                    selecting = self.target.outputs(after, fractions=fractions.policy)
        with torch.no_grad():
            if online is not None:
                online = self.output.values(self.output.predictions(online))
            predictions = self.output.predictions(evaluating)
            by_selecting = predictions if selecting is None else self.output.predictions(selecting)
            legal = batch.legal if len(batch.legal) else None
            return outputs, Next(online, self.output.values(by_selecting), predictions, plan.members, legal)

    def _row_weights(self, plan: UpdatePlan, batch: Transitions[Tensor], after: Next) -> Tensor | None:
        """Return the weight of each row for each member that learns, (rows, L); None: all alike."""
        weights = []
        if self.ensemble.data == "masked":
            every_row = torch.arange(len(batch.masks), device=batch.masks.device)[:, None]
            weights.append(batch.masks[every_row, plan.members].float())
        if len(batch.weights):
            weights.append(batch.weights[:, None].expand(-1, plan.members.shape[1]))
        if self.rule.backup_weight is not None:
            weights.append(self.rule.backup_weight(self.config, after))
        return reduce(torch.mul, weights) if weights else None

    def _draw_fractions(self, n_rows: int) -> Fractions:
        """Draw the fractions of an update, uniformly from [0, 1)."""
        config = self.config
        if config.implicit_quantiles is None:
            return NO_FRACTIONS
        counts = [config.implicit_quantiles, config.target_fractions, config.policy_fractions]
        drawn = torch.rand(n_rows, sum(counts), generator=self._generator)
        return Fractions(*drawn.to(self._parameters[0].device).split_with_sizes(counts, 1))

    def _samples(self, plan: UpdatePlan, n_rows: int) -> Tensor:
        """Return what the rule samples, on the learner's device; (0,) for most rules."""
        if self.rule.sample is None:
            return torch.empty(0)
        config: Any = self.config
        if self._subset_size is not None:
            config = replace(config, subset_size=self.subset_size)
        samples = self.rule.sample(config, plan.members, n_rows, self.target.n_members, self._generator)
        return samples.to(self._parameters[0].device)

    @property
    def subset_size(self) -> int | None:
        """The number of members that form the minimum, if evaluations steer it."""
        return None if self._subset_size is None else int(self._subset_size)

    def steer(self, deviation: float | None) -> None:
        """Adapt a steered rule to the relative deviation of the error that an evaluation has measured."""
        if self.rule.steer is not None and self._subset_size is not None and deviation is not None:
            size = self.rule.steer(self.config, int(self._subset_size), deviation, self._generator)
            self._subset_size.fill_(size)

    def resample(self) -> None:
        """Draw new noise for online and target members, if they are noisy."""
        if self.online.is_noisy:
            self.online.resample(self._generator)
            self.target.resample(self._generator)

    @contextmanager
    def _randomness_of_modules(self) -> Iterator[None]:
        """Let the user's modules draw (dropout, for example) from a generator that checkpoints keep."""
        if self._module_rng is None:
            yield
            return
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self._module_rng)
            yield
            self._module_rng.copy_(torch.get_rng_state())

    def set_learning_rate(self, learning_rate: float) -> None:
        """Take further updates with this step size."""
        self._optimiser.learning_rate = learning_rate

    def synchronise(self, times: int = 1) -> None:
        """Move the target members, or the oldest of their snapshots, to the online ones by `target_rate`.

        Several times at once, they end where as many moves would take them; a snapshot is taken once.
        """
        rate = self.config.target_rate
        moved = rate if times == 1 else 1 - (1 - rate) ** times
        oldest = 0
        if n := self.ensemble.snapshots:
            oldest = int(self._synchronisations) % n
            self._synchronisations += 1
        with torch.no_grad():
            for copy, parameter in zip(self._copies[oldest], self._parameters, strict=True):
                if moved == 1:
                    copy.copy_(parameter)
                else:
                    copy.lerp_(parameter, moved)
            for kept, buffer in zip(self._buffers_of_copies[oldest], _own_buffers(self.online), strict=True):
                kept.copy_(buffer)
        self.target.pack(self.rows)

    def _prepare_weights(self) -> None:
        self.online.refresh_noise_cache()
        self.target.pack(self.rows)
        if self.online.prior is not None:
            self.online.prior.pack(self.rows)

    def state(self) -> dict[str, Array]:
        """Return online and target members and the optimiser's state, without copying."""
        tensors = self._tensors()
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise RunError(f"A weight is not a finite number after update {self.updates}.")
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Restore a saved `state`; the number of updates is not part of it.

        A state of another network or optimiser is refused before anything changes.
        """
        own = self._tensors()
        for name in sorted(own.keys() | state.keys()):
            here = tuple(own[name].shape) if name in own else "nothing"
            saved = state[name].shape if name in state else "nothing"
            if here != saved:
                raise InputError(
                    f"The saved weights do not fit the options: {name} is {saved} there and {here} here."
                )
            kind = str(own[name].dtype).removeprefix("torch.")
            if state[name].dtype != np.dtype(kind):
                raise InputError(f"The saved weights {name} are {state[name].dtype} numbers, not {kind}.")
            if not np.isfinite(state[name]).all():
                raise InputError(f"The saved weights {name} are not all finite numbers.")
        if self._subset_size is not None and not 2 <= int(state["subset_size"][0]) <= self.ensemble.size:
            raise InputError(
                f"The saved subset size must lie between 2 and {self.ensemble.size}, "
                f"not {state['subset_size'][0]}."
            )
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(torch.from_numpy(state[name].copy()))
        if _GENERATOR_STATE in own:
            self._generator.set_state(own[_GENERATOR_STATE])
        if self.online.normaliser is not None:
            self.online.normaliser.refresh()
        self._prepare_weights()

    def _tensors(self) -> dict[str, Tensor]:
        """Return online and target members and the optimiser's state by name, without copying."""
        tensors = {f"online.{name}": tensor for name, tensor in self.online.state_dict().items()}
        tensors |= {f"target.{name}": tensor for name, tensor in self.target.state_dict().items()}
        if self.online.prior is not None:
            tensors |= {f"prior.{name}": x for name, x in self.online.prior.state_dict().items()}
        if self.ensemble.snapshots:
            tensors["synchronisations"] = self._synchronisations
        if self.online.is_noisy or self.online.is_implicit or self.rule.sample is not None:
            tensors[_GENERATOR_STATE] = self._generator.get_state()
        if self._subset_size is not None:
            tensors["subset_size"] = self._subset_size
        if self._module_rng is not None:
            tensors["module_chance"] = self._module_rng
        if self.online.normaliser is not None:
            tensors |= {f"observations.{name}": x for name, x in self.online.normaliser.tensors().items()}
        return tensors | {f"optimiser.{name}": x for name, x in self._optimiser.state().items()}


_GENERATOR_STATE = "chance"  # its name in checkpoints


def outputs_taken(outputs: Tensor, actions: Tensor) -> Tensor:
    """Return the outputs (rows, L[, Z]) of the actions taken (rows,), given outputs (rows, L, A[, Z])."""
    index = actions.view(-1, *[1] * (outputs.ndim - 1))
    return outputs.gather(2, index.expand(*outputs.shape[:2], 1, *outputs.shape[3:])).squeeze(2)


def _require_shape(bootstrap: Any, shape: tuple[int, ...]) -> None:
    """Refuse what a rule of the user's returns in another shape, which would be broadcast in silence."""
    found = getattr(bootstrap, "shape", None)
    if found != shape:
        returned = f"a tensor {tuple(found)}" if isinstance(found, torch.Size) else f"{bootstrap!r}"
        raise InputError(
            f"The rule must return a tensor {shape}, for each row and each member that learns, "
            f"not {returned}."
        )


def errors_by_row(errors: Tensor, masks: Tensor, members: Tensor) -> Tensor:
    """Return the mean |error| (rows,) over members whose masks (rows, K) are set, given errors (rows, L).

    Where masks keep all of `members` (rows or 1, L) from learning, those members stand in for the others. A
    row that no member may learn from has error 0: there is no reason to sample it again.
    """
    sizes = errors.abs()
    if not masks.shape[1]:
        return sizes.mean(1)
    learns = masks.gather(1, members.expand(len(masks), -1))
    learns = learns | (~learns.any(1, keepdim=True) & masks.any(1, keepdim=True))
    return (sizes * learns).sum(1) / learns.sum(1).clamp(min=1)


def _target_of(network: QNetwork, ensemble: Ensemble) -> QNetwork:
    """Return the target members, still equal to the online ones: a copy of each, or n snapshots of one."""
    if ensemble.snapshots:
        return network.copies(ensemble.snapshots).requires_grad_(False)
    target = deepcopy(network).requires_grad_(False)
    if network.prior is not None:  # the same one, not a copy
        target.add_prior(network.prior, ensemble.prior_scale)
    return target


def _own_buffers(network: QNetwork) -> list[Tensor]:
    """Return the buffers of the user's modules, such as running means."""
    return [] if network.own is None else list(network.own.buffers())


def _generator(seed: int, branch: int) -> torch.Generator:
    """Return a generator for a branch of the seed's sequence, apart from that of the initial weights."""
    own = np.random.SeedSequence(seed, spawn_key=(branch,)).generate_state(1)[0]
    return torch.Generator().manual_seed(int(own))
