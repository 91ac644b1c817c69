"""The training loop: act, step, store, sample, learn.

`Learning` samples and learns, which training from data (`offline.py`) does, too. `Training` adds the
environment. All mutable state is in them or in the learner.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ebql.deep.config.base import AgentConfig
from ebql.deep.evaluation.diversity import Diversity
from ebql.deep.fast.numpy_policy import numpy_values
from ebql.deep.learner import Learner
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.policy import Explorer, epsilon_greedy, only_legal
from ebql.deep.replay.capacity import make_replay
from ebql.deep.replay.frames import FrameReplay
from ebql.deep.replay.n_step import NStep, learnt_rewards
from ebql.deep.replay.ring import Array, Draw, Replay, Transitions
from ebql.deep.replay.sampling import make_sampler
from ebql.deep.training.schedules import epsilon_at, learning_rate_at
from ebql.environments import Lanes, LaneStep
from ebql.environments.lanes.checked import environment_errors, reset_lanes, step_lanes
from ebql.runs.metric_names import (
    EPISODES,
    EPSILON,
    ERROR_OTHERS,
    ERROR_OWN,
    LEARNING_RATE,
    LENGTH,
    LOSS,
    RETURN,
    SUBSET_SIZE,
    UPDATES,
)
from ebql.typed import count, typed

_WINDOW = 100  # episodes that the reported return is averaged over
_STREAMS = ("explore", "sample", "mask")
_CONTINUED = 2**31 + 2  # a spawn key that nothing else uses

Saved = tuple[dict[str, Array], dict[str, Any], dict[str, Array]]
"""The state of a training: tensors, what JSON can hold, and large arrays."""


def crossings(before: int, after: int, period: int) -> int:
    """Return how many multiples of `period` lie in (before, after]."""
    return after // period - before // period


class Learning(ABC):
    """A learner and the replay that it learns from; `rngs` has the streams `sample` and `mask`."""

    def __init__(
        self,
        config: AgentConfig,
        learner: Learner,
        replay: Replay | FrameReplay,
        rngs: dict[str, np.random.Generator],
    ) -> None:
        self.config, self.learner, self.replay = config, learner, replay
        self.step = 0
        self._sampler, self._rngs = make_sampler(config, replay.capacity), rngs
        self._moves_learning_rate = config.learning_rate_schedule != "constant"
        self._loss_sum, self._logged_sum, self._n_losses = 0.0, 0.0, 0
        self._diversity: Diversity | None = None
        self.loss: float | None = None
        """The loss of the last update; None before the first."""
        self.evaluation_due = False
        """Whether the evaluation at this step was interrupted and must be repeated."""

    frames_per_step: int = 1
    """Emulator frames per step; 1 without an emulator."""

    @abstractmethod
    def advance(self) -> None:
        """Take one step."""

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """Return the metrics since the last call; none of them depends on time."""

    @abstractmethod
    def state(self) -> Saved:
        """Return all that `restore` needs."""

    @abstractmethod
    def restore(
        self, tensors: Mapping[str, Array], state: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> None:
        """Restore a saved training."""

    def sample(self) -> tuple[Transitions[Array], NDArray[np.int64]]:
        """Return a batch from the replay, and its rows in the replay."""
        draw = self._sampler.draw(self.learner.rows, self.replay.size, self.step, self._rngs["sample"])
        if self.learner.own_rows and draw.weights is not None:
            # Rows are sorted by strata of priority; shuffle them, so that every member sees all strata.
            order = self._rngs["sample"].permutation(len(draw.rows))
            draw = Draw(draw.rows[order], draw.weights[order])
        batch = self.replay.gather(draw.rows)
        if draw.weights is not None:
            batch = batch._replace(weights=draw.weights)
        return batch, draw.rows

    def _learn(self) -> None:
        """Update the learner on a sampled batch."""
        if self._moves_learning_rate:
            self.learner.set_learning_rate(learning_rate_at(self.config, self.step))
        batch, rows = self.sample()
        result = self.learner.update(batch)
        if result.errors is not None:
            self._sampler.update(rows, result.errors.numpy(force=True))
        self.loss = result.loss
        self._loss_sum += result.loss
        self._logged_sum += result.logged or 0.0
        self._n_losses += 1
        if result.diversity is not None:
            self._diversity = result.diversity.plus(self._diversity or Diversity())

    def _draw_masks(self, n_rows: int) -> NDArray[np.bool_]:
        """Draw which members will learn from new transitions: masks (rows, K), or (rows, 0) without masks."""
        if not self.replay.n_masks:
            return np.empty((n_rows, 0), bool)
        draws = self._rngs["mask"].random((n_rows, self.replay.n_masks))
        return draws < self.learner.ensemble.mask_probability

    def _update_metrics(self) -> dict[str, Any]:
        """Return what the updates since the last call report."""
        loss, logged = None, None
        if self._n_losses:
            loss, logged = self._loss_sum / self._n_losses, self._logged_sum / self._n_losses
        self._loss_sum, self._logged_sum, self._n_losses = 0.0, 0.0, 0
        record = {LOSS: loss}
        if self._moves_learning_rate:
            record[LEARNING_RATE] = learning_rate_at(self.config, self.step)
        if self.learner.rule.logged is not None:
            record[self.learner.rule.logged] = logged
        if self.learner.subset_size is not None:
            record[SUBSET_SIZE] = self.learner.subset_size
        if self._diversity is not None:
            record |= {ERROR_OWN: self._diversity.own, ERROR_OTHERS: self._diversity.others}
            self._diversity = Diversity()
        return record

    def _update_state(self) -> dict[str, Any]:
        """Return the sums behind `_update_metrics` and the random streams."""
        state: dict[str, Any] = {
            "loss": self.loss,
            "losses": [self._loss_sum, self._n_losses],
            "logged": self._logged_sum,
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs.items()},
        }
        if self._diversity is not None:
            state["diversity"] = list(self._diversity)
        if self.evaluation_due:
            state["evaluation_due"] = True
        return state

    def _restore_updates(self, tensors: Mapping[str, Array], state: Mapping[str, Any]) -> None:
        """Restore the learner, the step, and what `_update_state` returned."""
        self.learner.restore(tensors)
        self.step, self.learner.updates = count(state["step"]), count(state["updates"])
        loss_sum, n_losses = state["losses"]
        self._loss_sum, self._n_losses = typed(float, loss_sum), count(n_losses)
        self._logged_sum = typed(float, state.get("logged", 0.0))  # missing in files written by version 0.1
        self.loss = typed(float | None, state.get("loss"))  # missing there, too
        if "diversity" in state:
            self._diversity = Diversity(*(typed(float, number) for number in state["diversity"]))
        self.evaluation_due = typed(bool, state.get("evaluation_due", False))
        for name, rng in self._rngs.items():
            rng.bit_generator.state = state["rngs"][name]


class Training(Learning):
    """A training in progress: the lanes, the replay that they fill, and the learner.

    A loaded agent counts on from `first_step`. It then has other episodes and other random numbers: those of
    the seed alone are the ones that it has learnt from before.
    """

    def __init__(
        self,
        config: AgentConfig,
        learner: Learner,
        lanes: Lanes,
        spec: ObservationSpec,
        first_step: int = 0,
    ) -> None:
        root, lane_seed = np.random.SeedSequence(config.seed), config.seed
        if first_step:
            root = np.random.SeedSequence(config.seed, spawn_key=(_CONTINUED, first_step))
            lane_seed = int(root.generate_state(1, np.uint64)[0]) >> 1
        observations = reset_lanes(lanes, lane_seed)
        seeds = root.spawn(len(_STREAMS))
        rngs = {name: np.random.default_rng(s) for name, s in zip(_STREAMS, seeds, strict=True)}
        super().__init__(config, learner, make_replay(config, spec, lanes, masks_of(learner)), rngs)
        self.step = first_step
        self.lanes, self.frames_per_step = lanes, lanes.frames_per_step
        self._observations, self._normaliser = observations, learner.online.normaliser
        if self._normaliser is not None:
            self._normaliser.update(observations)
        self.episodes = 0
        self._n_step = NStep(config.n_step, config.discount, lanes.n_lanes)
        self._explorer = Explorer(learner.ensemble, lanes.n_lanes, self._rngs["explore"])
        self._numpy_values = None
        if self._explorer.uses_aggregate:
            pessimistic = learner.ensemble.pessimistic
            self._numpy_values = numpy_values(learner.online, lanes.n_lanes, pessimistic=pessimistic)
        self._stored = self.replay.begin(self._observations)  # the same, as the replay stores them
        self._returns: deque[float] = deque(maxlen=_WINDOW)
        self._lengths: deque[int] = deque(maxlen=_WINDOW)

    def advance(self) -> None:
        """Take one step in every lane, then the updates that are due."""
        actions = self._act()
        result = step_lanes(self.lanes, actions, self.step)
        self._store(actions, result)
        before, self.step = self.step, self.step + int(np.count_nonzero(result.valid))
        # A loaded agent continues counting steps, but its replay is empty.
        stored = min(self.step, self.replay.size + len(self._n_step))
        learns = stored >= self.config.learning_starts and self.replay.size > 0
        for _ in range(crossings(before, self.step, self.config.update_period)):
            if learns:
                for _ in range(self.config.updates_per_period):
                    self._learn()
            else:
                self.learner.resample()  # noise must explore before learning starts, too
        if times := crossings(before, self.step, self.config.target_period):
            self.learner.synchronise(times)

    def _act(self) -> NDArray[np.int64]:
        """Return ε-greedy actions (N,)."""
        epsilon, rng = epsilon_at(self.config, self.step), self._rngs["explore"]
        lanes = self.lanes
        return epsilon_greedy(self._greedy, lanes.n_lanes, lanes.n_actions, epsilon, rng, lanes.masks)

    def _greedy(self) -> NDArray[np.int64]:
        """Return the actions (N,) that the ensemble prefers in the current states."""
        actions: NDArray[np.int64]
        if self._numpy_values is not None:
            actions = only_legal(self._numpy_values(self._observations), self.lanes.masks).argmax(-1)
        else:
            with torch.inference_mode():
                q = self.learner.acting_values(self._observations)
                actions = self._explorer.preferred(q, self.lanes.masks).numpy(force=True)
        return actions

    def _store(self, actions: NDArray[np.int64], result: LaneStep) -> None:
        """Add a step of the lanes to the replay, and record the episodes that ended."""
        rewards = learnt_rewards(result.rewards, self.config.reward_scale, self.config.reward_clip)
        stored = self.replay.keep(result)
        transitions = self._n_step.push(self._stored, actions, rewards, stored)
        if transitions is not None:
            n_rows = len(transitions.actions)
            self._sampler.added(self.replay.next_row, n_rows)
            self.replay.add(transitions._replace(masks=self._draw_masks(n_rows)))
        self._observations, self._stored = result.observations, stored.observations
        if self._normaliser is not None:
            self._normaliser.update(result.observations)
        for episode in result.episodes:
            self.episodes += 1
            self._returns.append(episode.ret)
            self._lengths.append(episode.length)
            self._explorer.begin_episode(episode.lane)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics since the last call; none of them depends on time."""
        return {
            "step": self.step,
            UPDATES: self.learner.updates,
            EPISODES: self.episodes,
            EPSILON: epsilon_at(self.config, self.step),
            RETURN: _mean(self._returns),
            LENGTH: _mean(self._lengths),
            **self._update_metrics(),
        }

    def state(self) -> Saved:
        """Return all that `restore` needs: tensors, state for JSON, and large arrays."""
        state = {
            "step": self.step,
            "updates": self.learner.updates,
            "episodes": self.episodes,
            "returns": list(self._returns),
            "lengths": list(self._lengths),
            **self._update_state(),
        }
        parts = {
            "replay": self.replay.state(),
            "sampler": self._sampler.state(),
            "nstep": self._n_step.state(),
            "explorer": self._explorer.state(),
            "lanes": self.lanes.state(),
        }
        return self.learner.state(), state, joined(parts)

    def restore(
        self, tensors: Mapping[str, Array], state: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> None:
        """Restore a saved training."""
        self._restore_updates(tensors, state)
        self.replay.restore(part_of(arrays, "replay"))
        actions = arrays["replay.actions"]
        if len(actions) and not 0 <= actions.min() <= actions.max() < self.lanes.n_actions:
            raise ValueError("the replay has actions that the environment does not have")
        self._sampler.restore(part_of(arrays, "sampler"))
        self._n_step.restore(part_of(arrays, "nstep"))
        self._explorer.restore(part_of(arrays, "explorer"))
        with environment_errors(f"while it was replayed to step {self.step}"):
            self._observations = self.lanes.restore(part_of(arrays, "lanes"))
        self._stored = self.replay.begin(self._observations)
        self.episodes = count(state["episodes"])
        self._returns.extend(typed(list[float], state["returns"]))
        self._lengths.extend(typed(list[int], state["lengths"]))


def _mean(values: deque[float] | deque[int]) -> float | None:
    return sum(values) / len(values) if values else None


def masks_of(learner: Learner) -> int:
    """Return how many masks a transition has: one for each member with masked data, otherwise none."""
    return learner.ensemble.size if learner.ensemble.data == "masked" else 0


def joined(parts: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of all parts by `part.name`."""
    return {f"{part}.{name}": array for part, own in parts.items() for name, array in own.items()}


def part_of(arrays: Mapping[str, Array], part: str) -> dict[str, Array]:
    """Return the arrays of one part of `joined` by their own names."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
