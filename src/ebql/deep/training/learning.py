"""Learning from a replay: what training in an environment and training from data have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebql.deep.config.base import AgentConfig
from ebql.deep.learner import Learner
from ebql.deep.replay.frames import FrameReplay
from ebql.deep.replay.ring import Array, Draw, Replay, Transitions
from ebql.deep.replay.sampling import make_sampler
from ebql.deep.training.schedules import learning_rate_at
from ebql.runs.metric_names import LEARNING_RATE, LOSS

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
        self.loss: float | None = None
        """The loss of the last update; None before the first."""

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
        return record

    def _update_state(self) -> dict[str, Any]:
        """Return the sums behind `_update_metrics` and the random streams."""
        return {
            "losses": [self._loss_sum, self._n_losses],
            "logged": self._logged_sum,
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs.items()},
        }

    def _restore_updates(self, tensors: Mapping[str, Array], state: Mapping[str, Any]) -> None:
        """Restore the learner, the step, and what `_update_state` returned."""
        self.learner.restore(tensors)
        self.step, self.learner.updates = state["step"], state["updates"]
        self._loss_sum, self._n_losses = state["losses"]
        self._logged_sum = state.get("logged", 0.0)  # missing in checkpoints written by version 0.1
        for name, rng in self._rngs.items():
            rng.bit_generator.state = state["rngs"][name]


def masks_of(learner: Learner) -> int:
    """Return how many masks a transition has: one for each member with masked data, otherwise none."""
    return learner.ensemble.size if learner.ensemble.data == "masked" else 0


def joined(parts: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of all parts by `part.name`."""
    return {f"{part}.{name}": array for part, held in parts.items() for name, array in held.items()}


def part_of(arrays: Mapping[str, Array], part: str) -> dict[str, Array]:
    """Return the arrays of one part of `joined` by their own names."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
