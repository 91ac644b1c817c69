"""The training loop: act, step, remember, learn. Everything that changes is here or in the learner."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ebql.deep.config.base import AgentConfig
from ebql.deep.evaluation.rollout import environment_errors, reset_lanes, step_lanes
from ebql.deep.fast.numpy_policy import numpy_values
from ebql.deep.learner import Learner
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.policy import Explorer
from ebql.deep.replay.capacity import make_replay
from ebql.deep.replay.n_step import NStep
from ebql.deep.replay.ring import Array, Transitions
from ebql.deep.replay.sampling import Draw, make_sampler
from ebql.environments import Lanes, LaneStep
from ebql.runs.metric_names import EPISODES, EPSILON, LENGTH, LOSS, RETURN, UPDATES

_WINDOW = 100  # episodes that the reported return is averaged over
_STREAMS = ("explore", "sample", "mask")


def epsilon_at(config: AgentConfig, step: int) -> float:
    """Return the probability of a random action at this agent step."""
    progress = min(step / config.epsilon_steps, 1.0)
    return config.epsilon_start + progress * (config.epsilon_end - config.epsilon_start)


def crossings(before: int, after: int, period: int) -> int:
    """Return how many multiples of `period` lie in (before, after]."""
    return after // period - before // period


class Training:
    """One run in progress: the lanes, what they left in the replay, and the learner that draws from it."""

    def __init__(self, config: AgentConfig, learner: Learner, lanes: Lanes, spec: ObservationSpec) -> None:
        self.config, self.learner, self.lanes = config, learner, lanes
        n_masks = learner.ensemble.size if learner.ensemble.data == "masked" else 0
        self.replay, self._sampler = make_replay(config, spec, lanes, n_masks), make_sampler(config)
        self.step = 0
        self.episodes = 0
        self._nstep = NStep(config.n_step, config.discount, lanes.n_lanes)
        seeds = np.random.SeedSequence(config.seed).spawn(len(_STREAMS))
        self._rngs = {name: np.random.default_rng(s) for name, s in zip(_STREAMS, seeds, strict=True)}
        self._explorer = Explorer(learner.ensemble, lanes.n_lanes, self._rngs["explore"])
        self._numpy_values = None
        if self._explorer.follows_all:
            pessimistic = learner.ensemble.pessimistic
            self._numpy_values = numpy_values(learner.online, lanes.n_lanes, pessimistic=pessimistic)
        self._observations = reset_lanes(lanes, config.seed)
        self._kept = self.replay.begin(self._observations)
        self._returns: deque[float] = deque(maxlen=_WINDOW)
        self._lengths: deque[int] = deque(maxlen=_WINDOW)
        self._loss_sum, self._logged_sum, self._n_losses = 0.0, 0.0, 0

    def advance(self) -> None:
        """Take one step in every lane, and the updates that are due by then."""
        actions = self._act()
        taken = step_lanes(self.lanes, actions, self.step)
        self._remember(actions, taken)
        before, self.step = self.step, self.step + int(np.count_nonzero(taken.valid))
        # A loaded agent comes with its steps and without their transitions: it must gather anew.
        gathered = min(self.step, self.replay.size + len(self._nstep))
        learns = gathered >= self.config.learning_starts and self.replay.size > 0
        for _ in range(crossings(before, self.step, self.config.update_period)):
            if learns:
                self._learn()
            else:
                self.learner.resample()  # the noise explores before anything is learnt
        if crossings(before, self.step, self.config.target_period):
            self.learner.synchronise()

    def _draw(self) -> tuple[Draw, Transitions]:
        draw = self._sampler.draw(self.learner.rows, self.replay.size, self.step, self._rngs["sample"])
        if self.learner.own_rows and draw.weights is not None:
            # Rows come in the order of their parts of the priority: a member's block must not be one stretch.
            order = self._rngs["sample"].permutation(len(draw.rows))
            draw = Draw(draw.rows[order], draw.weights[order])
        return draw, self.replay.gather(draw.rows)

    def _learn(self) -> None:
        draw, batch = self._draw()
        learnt = self.learner.update(batch, draw.weights)
        if learnt.errors is not None:
            self._sampler.learnt(draw.rows, learnt.errors.numpy(force=True))
        self._loss_sum += learnt.loss
        self._logged_sum += learnt.logged or 0.0
        self._n_losses += 1

    def _act(self) -> NDArray[np.int64]:
        """Choose ε-greedy actions (N,); the network is asked only where one isn't drawn at random."""
        n_lanes = self.lanes.n_lanes
        chance, choice = self._rngs["explore"].random((2, n_lanes))
        explore = chance < epsilon_at(self.config, self.step)
        n_exploring = np.count_nonzero(explore)
        random: NDArray[np.int64] = (choice * self.lanes.n_actions).astype(np.int64)
        if n_exploring == n_lanes:
            return random
        greedy = self._greedy(self._observations)
        return np.where(explore, random, greedy) if n_exploring else greedy

    def _greedy(self, observations: Array) -> NDArray[np.int64]:
        actions: NDArray[np.int64]
        if self._numpy_values is not None:
            actions = self._numpy_values(observations).argmax(-1)
        else:
            with torch.inference_mode():
                q = self.learner.acting_values(observations)
                actions = self._explorer.preferred(q).numpy(force=True)
        return actions

    def _remember(self, actions: NDArray[np.int64], taken: LaneStep) -> None:
        rewards = taken.rewards
        if self.config.reward_clip is not None:
            rewards = rewards.clip(-self.config.reward_clip, self.config.reward_clip)
        kept = self.replay.keep(taken)
        columns = self._nstep.push(self._kept, actions, rewards, kept)
        if n_rows := len(columns[0]):
            self._sampler.added(self.replay.next_row, n_rows)
            self.replay.add(Transitions(*columns, self._draw_masks(n_rows)))
        self._observations, self._kept = taken.observations, kept.observations
        for episode in taken.episodes:
            self.episodes += 1
            self._returns.append(episode.ret)
            self._lengths.append(episode.length)
            self._explorer.begin_episode(episode.lane)

    def _draw_masks(self, n_rows: int) -> NDArray[np.bool_]:
        """Decide, once for all, which members will learn from each new transition: (rows, K or 0)."""
        if not self.replay.n_masks:
            return np.empty((n_rows, 0), bool)
        draws = self._rngs["mask"].random((n_rows, self.replay.n_masks))
        return draws < self.learner.ensemble.mask_probability

    def metrics(self) -> dict[str, Any]:
        """Return what happened since the last call; nothing in it depends on the clock."""
        loss, logged = None, None
        if self._n_losses:
            loss, logged = self._loss_sum / self._n_losses, self._logged_sum / self._n_losses
        self._loss_sum, self._logged_sum, self._n_losses = 0.0, 0.0, 0
        record = {
            "step": self.step,
            UPDATES: self.learner.updates,
            EPISODES: self.episodes,
            EPSILON: epsilon_at(self.config, self.step),
            RETURN: _mean(self._returns),
            LENGTH: _mean(self._lengths),
            LOSS: loss,
        }
        if self.learner.rule.logged is not None:
            record[self.learner.rule.logged] = logged
        return record

    def state(self) -> tuple[dict[str, Array], dict[str, Any], dict[str, Array]]:
        """Return all that `restore` needs: tensors, JSON-able state and big arrays."""
        state = {
            "step": self.step,
            "updates": self.learner.updates,
            "episodes": self.episodes,
            "returns": list(self._returns),
            "lengths": list(self._lengths),
            "losses": [self._loss_sum, self._n_losses],
            "logged": self._logged_sum,
            "rngs": {name: rng.bit_generator.state for name, rng in self._rngs.items()},
        }
        parts = {
            "replay": self.replay.state(),
            "sampler": self._sampler.state(),
            "nstep": self._nstep.state(),
            "explorer": self._explorer.state(),
            "lanes": self.lanes.state(),
        }
        arrays = {f"{part}.{name}": array for part, own in parts.items() for name, array in own.items()}
        return self.learner.state(), state, arrays

    def restore(
        self, tensors: Mapping[str, Array], state: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> None:
        """Become the training that was saved."""
        self.learner.restore(tensors)
        self.replay.restore(_part(arrays, "replay"))
        self._sampler.restore(_part(arrays, "sampler"))
        self._nstep.restore(_part(arrays, "nstep"))
        self._explorer.restore(_part(arrays, "explorer"))
        with environment_errors(f"on its way back to step {state['step']}"):
            self._observations = self.lanes.restore(_part(arrays, "lanes"))
        self._kept = self.replay.begin(self._observations)
        self.step, self.episodes = state["step"], state["episodes"]
        self.learner.updates = state["updates"]
        self._returns.extend(state["returns"])
        self._lengths.extend(state["lengths"])
        self._loss_sum, self._n_losses = state["losses"]
        self._logged_sum = state.get("logged", 0.0)  # not in checkpoints of before
        for name, rng in self._rngs.items():
            rng.bit_generator.state = state["rngs"][name]


def _mean(values: deque[float] | deque[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _part(arrays: Mapping[str, Array], part: str) -> dict[str, Array]:
    prefix = f"{part}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
