"""Episodes played without learning, and the members' values along the way."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from ebql.deep.policy import Actions, Masks, aggregate, epsilon_greedy, only_legal
from ebql.deep.replay.ring import Array
from ebql.environments import Lanes, LaneStep
from ebql.environments.lanes.checked import reset_lanes, step_lanes
from ebql.errors import RunError

MAX_STEPS = 27_000  # agent steps of an episode: Atari's usual 108,000 frames
_EVALUATION_KEY = 2**31  # a spawn key that the lanes in training never use

Values = Callable[[Array], Array]
"""Maps observations (N, …) to the members' action values (N, K, A)."""
Policy = Callable[[Array], Actions]
"""Maps observations (N, …) to actions (N,)."""


@dataclass(frozen=True)
class Trace:
    """One episode of T steps: its rewards, and what the members expected, each (T,)."""

    rewards: NDArray[np.float64]
    """The environment's rewards, not clipped."""
    values: NDArray[np.float64]
    """The value of the action taken: the members' mean, or their minimum in a pessimistic ensemble."""
    spreads: NDArray[np.float64]
    """The standard deviation (divisor K) of that value over members."""
    agreements: NDArray[np.float64]
    """The share of members whose greedy action is the preferred one."""
    terminated: bool
    """False if the episode was cut, by a time limit or by `play`: its return is then incomplete."""
    lost_lives: tuple[int, ...] = ()
    """The steps t at which a life was lost: learning ends an episode there, but the game goes on."""
    cut_value: float = 0.0
    """The value of the preferred action in the state where the episode was cut; 0 if it terminated."""
    scored_steps: int | None = None
    """The time limit, if the episode was continued past it to complete its returns; None: all steps score."""

    @property
    def score(self) -> float:
        """The undiscounted sum of unclipped rewards up to the time limit."""
        return float(self.rewards[: self.scored_steps].sum())

    @property
    def length(self) -> int:
        """The agent steps up to the time limit."""
        return len(self.rewards[: self.scored_steps])


def evaluation_seed(seed: int) -> int:
    """Return the seed of the lanes for an evaluation with the seed that a user gave.

    Lanes in training are seeded with the run's seed itself. An evaluation with the same number must not
    play the episodes that the agent was trained on.
    """
    words = np.random.SeedSequence(seed, spawn_key=(_EVALUATION_KEY,)).generate_state(1, np.uint64)
    return int(words[0]) >> 1


def periodic_evaluation_seed(run_seed: int, step: int) -> int:
    """Return the seed of an evaluation at this agent step: new episodes each time, the same in each run."""
    return _spawned_seed(run_seed, step)


def _spawned_seed(seed: int, key: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(key,)).generate_state(1)[0])


def play(
    values_of: Values,
    lanes: Lanes,
    episodes: int,
    seed: int,
    epsilon: float = 0.0,
    *,
    pessimistic: bool,
    max_steps: int = MAX_STEPS,
    scored_steps: int | None = None,
    policy: Policy | None = None,
) -> list[Trace]:
    """Play episodes ε-greedily on the members' mean, or on the minimum of a `pessimistic` ensemble.

    With a `policy`, its actions are taken in place of the greedy ones.

    Each lane plays a fixed share of the episodes, then rests. Taking whichever episodes finish first would
    favour short ones.

    Episodes are whole games. Where learning treats a lost life as the end, the trace only records it. Rewards
    after `scored_steps` do not count towards the score.

    An episode is cut after `max_steps` agent steps, because not every environment has a time limit. A single
    lane cannot be reset, so a lane with a cut episode retires: it rests until all lanes are reset. The other
    lanes play the rest of its share; when no lane is left, all are reset.
    """
    return _Rollout(
        values_of,
        lanes,
        episodes,
        seed,
        epsilon,
        pessimistic=pessimistic,
        max_steps=max_steps,
        scored_steps=scored_steps,
        policy=policy,
    ).traces()


def play_past_limit(
    values_of: Values,
    lanes: Lanes,
    episodes: int,
    seed: int,
    epsilon: float = 0.0,
    *,
    pessimistic: bool,
    extra_steps: int | None,
    max_steps: int | None = None,
    policy: Policy | None = None,
) -> tuple[list[Trace], int | None]:
    """Play episodes that continue for `extra_steps` past the lanes' time limit, if the lanes allow it.

    Also return the number of steps after which episodes are cut; None if it is unknown. If the environment
    fails past its limit, the episodes are played again within it.
    """
    limit, most = lanes.step_limit, max_steps or MAX_STEPS
    play_episodes = partial(
        play,
        values_of,
        lanes,
        episodes,
        seed,
        epsilon,
        pessimistic=pessimistic,
        max_steps=most,
        policy=policy,
    )
    if limit is not None and extra_steps and limit + extra_steps <= most and lanes.extend_limit(extra_steps):
        try:
            return play_episodes(scored_steps=limit), limit + extra_steps
        except RunError:  # probably the environment cannot be stepped past its limit
            pass
        finally:
            lanes.extend_limit(0)
    known_limits = [steps for steps in (limit, max_steps) if steps is not None]
    return play_episodes(), min(known_limits, default=None)


_Step = tuple[float, float, float, float]  # reward, value, spread, agreement


class _LaneRecord:
    """The episodes of one lane: finished ones, the current one, and how many the lane is to play."""

    def __init__(self, quota: int) -> None:
        self.quota = quota
        self.retired = False
        self.traces: list[Trace] = []
        self._steps: list[_Step] = []
        self._lost_lives: list[int] = []

    @property
    def n_missing(self) -> int:
        """The episodes still to play."""
        return max(self.quota - len(self.traces), 0)

    @property
    def is_playing(self) -> bool:
        """Whether the lane has episodes left to play, and can."""
        return not self.retired and self.n_missing > 0

    @property
    def length(self) -> int:
        """The steps of the current episode so far."""
        return len(self._steps)

    def add(self, step: _Step, *, life_lost: bool) -> None:
        """Append a step to the current episode."""
        self._steps.append(step)
        if life_lost:
            self._lost_lives.append(len(self._steps) - 1)

    def finish(self, *, cut_value: float | None, scored_steps: int | None) -> None:
        """Turn the current episode into a trace; without a `cut_value`, it terminated."""
        rewards, values, spreads, agreements = np.array(self._steps, np.float64).T
        self.traces.append(
            Trace(
                rewards,
                values,
                spreads,
                agreements,
                terminated=cut_value is None,
                lost_lives=tuple(self._lost_lives),
                cut_value=cut_value or 0.0,
                scored_steps=scored_steps,
            )
        )
        self._steps, self._lost_lives = [], []

    def retire(self) -> int:
        """Play no further episodes until the next reset; return how many others must play instead."""
        n_missing = self.n_missing
        self.retired, self.quota = True, self.quota - n_missing
        return n_missing


class _Rollout:
    """Episodes being played in all lanes; see `play`."""

    def __init__(
        self,
        values_of: Values,
        lanes: Lanes,
        episodes: int,
        seed: int,
        epsilon: float,
        *,
        pessimistic: bool,
        max_steps: int,
        scored_steps: int | None,
        policy: Policy | None,
    ) -> None:
        self._values_of, self._lanes, self._seed = values_of, lanes, seed
        self._policy = policy
        self._epsilon, self._pessimistic = epsilon, pessimistic
        self._max_steps, self._scored_steps = max_steps, scored_steps
        self._rng = np.random.default_rng(seed)
        share, rest = divmod(episodes, lanes.n_lanes)
        self._records = [_LaneRecord(share + (lane < rest)) for lane in range(lanes.n_lanes)]
        self._n_steps, self._n_resets = 0, 0
        self._reset(seed)

    def traces(self) -> list[Trace]:
        """Play until every lane has its share, and return the episodes."""
        while any(record.is_playing for record in self._records):
            self._rest_idle_lanes()
            n_unassigned = self._advance()
            if n_unassigned:
                self._reassign(n_unassigned)
        return [trace for record in self._records for trace in record.traces[: record.quota]]

    def _reset(self, seed: int) -> None:
        """Start an episode in every lane; none rests any more."""
        self._observations = reset_lanes(self._lanes, seed)
        self._resting = [False] * len(self._records)

    def _rest_idle_lanes(self) -> None:
        """Let the lanes that have nothing left to play rest."""
        resting = [not record.is_playing for record in self._records]
        if resting != self._resting:
            self._lanes.rest(np.array(resting))
            self._resting = resting

    def _advance(self) -> int:
        """Take one step in every lane; return how many episodes retiring lanes leave to the others."""
        q, legal = self._values_of(self._observations), self._lanes.masks
        preferred = self._preferred(self._observations, q, legal)
        actions = epsilon_greedy(preferred, len(q), self._lanes.n_actions, self._epsilon, self._rng, legal)
        result = step_lanes(self._lanes, actions, self._n_steps, " of an evaluation")
        q_taken = q[np.arange(len(q)), :, actions]
        by_member = only_legal(q, None if legal is None else legal[:, None]).argmax(-1)
        agreements = (by_member == preferred[:, None]).mean(1)
        columns = (result.rewards, self._aggregate(q_taken), q_taken.std(1), agreements)
        game_over = {episode.lane for episode in result.episodes}
        n_unassigned = 0
        for lane, step in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if result.valid[lane] and not self._records[lane].retired:
                n_unassigned += self._record(lane, step, result, game_over=lane in game_over)
        self._observations, self._n_steps = result.observations, self._n_steps + 1
        return n_unassigned

    def _record(self, lane: int, step: _Step, result: LaneStep, *, game_over: bool) -> int:
        """Record a lane's step; return how many episodes the lane leaves to others if it retires."""
        record, terminated = self._records[lane], result.terminated[lane]
        record.add(step, life_lost=terminated and not game_over)
        if not game_over and record.length < self._max_steps:
            return 0
        cut_value = None
        if not terminated:
            cut_at = result.next_observations[lane : lane + 1]
            legal = None if result.next_masks is None else result.next_masks[lane : lane + 1]
            last = self._values_of(cut_at)
            cut_value = float(self._aggregate(last)[0, self._preferred(cut_at, last, legal)[0]])
        record.finish(cut_value=cut_value, scored_steps=self._scored_steps)
        return 0 if game_over else record.retire()

    def _reassign(self, episodes: int) -> None:
        """Let the lanes that have not retired play these episodes; if all have, reset them first."""
        if all(record.retired for record in self._records):
            self._n_resets += 1
            self._reset(_spawned_seed(self._seed, self._n_resets))
            for record in self._records:
                record.retired = False
        active = cycle([record for record in self._records if not record.retired])
        for _, record in zip(range(episodes), active, strict=False):
            record.quota += 1

    def _preferred(self, observations: Array, q: Array, legal: Masks | None) -> Actions:
        """Return the actions (N,) of the policy, or the greedy ones on the members' values (N, K, A)."""
        if self._policy is not None:
            return self._policy(observations)
        greedy: Actions = only_legal(self._aggregate(q), legal).argmax(-1)
        return greedy

    def _aggregate(self, values: Array) -> Array:
        """Return the ensemble's values, (N, …), of the members' values (N, K, …)."""
        return aggregate(values, 1, pessimistic=self._pessimistic)
