"""Plays an agent's current policy, and measures its score and its bias."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ebql.deep.config.base import AgentConfig
from ebql.deep.evaluation.bias import TOLERANCE, Bias, horizon, measured_bias
from ebql.deep.evaluation.evaluation import Evaluation
from ebql.deep.evaluation.rollout import (
    Trace,
    Values,
    evaluation_seed,
    periodic_evaluation_seed,
    play_past_limit,
)
from ebql.environments import Lanes
from ebql.environments.lanes.seeded import checked_seed
from ebql.errors import InputError, whole_number

# The longest episode, in agent steps, that is played for the bias alone; a stuck Atari game lasts 27,000.
_BIAS_STEPS = 5_000


@dataclass(frozen=True)
class Player:
    """A policy, where it plays, and the seed of its episodes."""

    config: AgentConfig
    values_of: Values
    open_lanes: Callable[[int], AbstractContextManager[Lanes]]
    """Opens lanes for this many episodes, and closes them afterwards."""
    seed: int

    @staticmethod
    def seed_of(given: int | None, config: AgentConfig, step: int) -> int:
        """Return the seed of the episodes: from the one that the user gave, or the one of this agent step."""
        if given is None:
            return periodic_evaluation_seed(config.seed, step)
        return evaluation_seed(checked_seed(whole_number("seed", given, 0)))

    def evaluate(self, episodes: int) -> Evaluation:
        """Return the score with `evaluation_epsilon`, and the bias of the greedy policy."""
        epsilon = self.config.evaluation_epsilon
        if epsilon == 0:
            traces, limit = self._play(episodes)
            return Evaluation.of(traces, self._bias(traces, limit))
        scored, _ = self._play(episodes, epsilon=epsilon)
        traces, limit = self._play(episodes, max_steps=_BIAS_STEPS)
        return Evaluation.of(scored, self._bias(traces, limit))

    def measure_bias(self, episodes: int, tolerance: float) -> Bias:
        """Return the bias of the greedy policy; see `Agent.measure_bias`."""
        if not 0 <= tolerance <= 1:
            raise InputError(f"tolerance must lie between 0 and 1, not {tolerance}.")
        traces, limit = self._play(episodes, tolerance=tolerance)
        return self._bias(traces, limit, tolerance)

    def _bias(self, traces: list[Trace], limit: int | None, tolerance: float = TOLERANCE) -> Bias:
        config = self.config
        return measured_bias(
            traces,
            config.discount,
            config.reward_clip,
            tolerance,
            limit=limit,
            reward_scale=config.reward_scale,
        )

    def _play(
        self,
        episodes: int,
        *,
        epsilon: float = 0.0,
        tolerance: float = TOLERANCE,
        max_steps: int | None = None,
    ) -> tuple[list[Trace], int | None]:
        """Play episodes; return their traces and the steps after which they are cut, if that is known.

        Greedy episodes continue past a time limit, if they can, until the discount has fallen to `tolerance`.
        """
        episodes = whole_number("episodes", episodes, 1)
        with self.open_lanes(episodes) as lanes:
            return play_past_limit(
                self.values_of,
                lanes,
                episodes,
                self.seed,
                epsilon,
                pessimistic=self.config.ensemble().pessimistic,
                extra_steps=horizon(self.config.discount, tolerance) if epsilon == 0 else None,
                max_steps=max_steps,
            )
