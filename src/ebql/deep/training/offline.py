"""Training from data alone: updates on fixed transitions, without an environment."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ebql.deep.config.base import AgentConfig
from ebql.deep.learner import Learner
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay.frames import FrameReplay
from ebql.deep.replay.ring import Array, Replay
from ebql.deep.training.datasets import is_frames
from ebql.deep.training.trainer import Learning, Saved, crossings, joined, masks_of, part_of
from ebql.errors import InputError
from ebql.runs.metric_names import UPDATES

_STREAMS = ("sample", "mask")
_KEY = 2**31 + 1  # a spawn key that neither training nor evaluations use


class OfflineTraining(Learning):
    """A training from data in progress. A step is an update: every period of the config counts updates.

    `data` is the state of a replay; masks are drawn if it has none. The checkpoints hold the data, so a run
    can be resumed without the data's source.
    """

    def __init__(
        self,
        config: AgentConfig,
        learner: Learner,
        spec: ObservationSpec,
        data: Mapping[str, Array],
        first_step: int = 0,
    ) -> None:
        seeds = np.random.SeedSequence(config.seed, spawn_key=(_KEY, first_step)).spawn(len(_STREAMS))
        rngs = {name: np.random.default_rng(s) for name, s in zip(_STREAMS, seeds, strict=True)}
        n_rows, n_masks = len(data["actions"]), masks_of(learner)
        if learner.ensemble.log_diversity and "legal" in data:
            raise InputError(
                "log-diversity does not work with data that has action masks, because illegal actions could "
                "count as greedy: turn log-diversity off."
            )
        replay: Replay | FrameReplay
        if is_frames(data):
            replay = FrameReplay(n_rows, spec, n_masks, n_step=config.n_step, compress=config.compress)
        else:  # the replay of a run may hold the legal actions (rows, A)
            replay = Replay(n_rows, spec, n_masks, data["legal"].shape[1] if "legal" in data else None)
        super().__init__(config, learner, replay, rngs)
        replay.restore({"masks": self._draw_masks(n_rows), **data})
        self._sampler.added(0, n_rows)
        if learner.online.normaliser is not None:
            learner.online.normaliser.update(data["observations"])
        self.step = first_step

    def advance(self) -> None:
        """Take one update, and copy the online members to the target members if it is time."""
        self.step += 1
        self._learn()
        if crossings(self.step - 1, self.step, self.config.target_period):
            self.learner.synchronise()

    def metrics(self) -> dict[str, Any]:
        """Return the metrics since the last call; none of them depends on time."""
        return {"step": self.step, UPDATES: self.learner.updates, **self._update_metrics()}

    def state(self) -> Saved:
        """Return all that `restore` needs, and the data as arrays that never change."""
        state = {"step": self.step, "updates": self.learner.updates, **self._update_state()}
        data = {name: _read_only(array) for name, array in self.replay.state().items()}
        return self.learner.state(), state, joined({"replay": data, "sampler": self._sampler.state()})

    def restore(
        self, tensors: Mapping[str, Array], state: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> None:
        """Restore a saved training with the same data."""
        self._restore_updates(tensors, state)
        self._sampler.restore(part_of(arrays, "sampler"))


def _read_only(array: Array) -> Array:
    """Return a view of the array that tells checkpoints that it never changes."""
    view = array.view()
    view.flags.writeable = False
    return view
