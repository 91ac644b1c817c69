"""Episodes played without learning, and what the members said on the way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from ebql.deep.networks.observations import first_not_finite
from ebql.deep.policy import aggregate, epsilon_greedy
from ebql.deep.replay.ring import Array
from ebql.environments import Lanes, LaneStep
from ebql.environments.lanes.interface import Observations
from ebql.errors import RunError, UserError

MAX_STEPS = 27_000  # agent steps of an episode: Atari's usual 108,000 frames
_PLAYED = 2**31  # the branch of a seed's sequence that no lane in training reaches


@dataclass(frozen=True)
class Trace:
    """One episode of T steps: what was earned and what had been expected, each (T,)."""

    rewards: NDArray[np.float64]
    """The raw rewards, as the environment gave them."""
    values: NDArray[np.float64]
    """What the members say together of the action taken: their mean value, or their minimum."""
    spreads: NDArray[np.float64]
    """The members' standard deviation (divisor K) of that value."""
    agreements: NDArray[np.float64]
    """The share of members whose own best action is the best of all together."""
    terminated: bool
    """False if a time limit, or `play`, cut the episode: then more would have been earned."""
    lost_lives: tuple[int, ...] = ()
    """The steps t at which play went on, but an episode to learn from was over: no value followed them."""
    cut_value: float = 0.0
    """The members' value of the greedy action in the state at which the episode was cut; 0 if it ended."""
    scored_steps: int | None = None
    """The time limit, where play went on beyond it only to see what a state earns; None: all steps score."""

    @property
    def score(self) -> float:
        """The undiscounted sum of raw rewards up to the time limit."""
        return float(self.rewards[: self.scored_steps].sum())

    @property
    def length(self) -> int:
        """The agent steps up to the time limit."""
        return len(self.rewards[: self.scored_steps])


@contextmanager
def environment_errors(when: str) -> Iterator[None]:
    """Turn whatever an environment raises into a `RunError` of one line that says `when`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        raise RunError(f"The environment raised {type(error).__name__} {when}: {first_line}") from error


def reset_lanes(lanes: Lanes, seed: int) -> Observations:
    """Start every lane afresh; what an environment raises, or a NaN observation, becomes a `RunError`."""
    with environment_errors("on reset"):
        observations = lanes.reset(seed)
    _require_finite(observations, "on reset")
    return observations


def step_lanes(lanes: Lanes, actions: NDArray[np.int64], step: int, during: str = "") -> LaneStep:
    """Step the lanes; what an environment raises becomes a `RunError` that says after which `step`.

    So does a reward or an observation that isn't finite. `during` says whose steps are counted, if not the
    training's.
    """
    when = f"after step {step}{during}"
    with environment_errors(when):
        taken = lanes.step(actions)
    if not np.isfinite(taken.rewards).all():
        wrong = taken.rewards[~np.isfinite(taken.rewards)][0]
        raise RunError(f"The environment gave the reward {wrong} {when}: it must be finite.")
    _require_finite(taken.next_observations, when)
    if taken.observations is not taken.next_observations:
        _require_finite(taken.observations, when)
    return taken


def _require_finite(observations: Observations, when: str) -> None:
    """Refuse observations (N, …) of N lanes with a NaN or an infinity."""
    found = first_not_finite(observations)
    if found is None:
        return
    lane, wrong = found
    which = f" in lane {lane} (of 0 to {len(observations) - 1})" if len(observations) > 1 else ""
    raise RunError(f"The environment{which} gave an observation with {wrong} {when}: it must be finite.")


def played_seed(seed: int) -> int:
    """Return the seed of lanes that play, for which `seed` is what a person gave.

    The lanes in training take theirs from the run's seed itself: an evaluation with the same number must
    not begin where the agent has learnt.
    """
    words = np.random.SeedSequence(seed, spawn_key=(_PLAYED,)).generate_state(1, np.uint64)
    return int(words[0]) >> 1


class _Notes:
    """A lane's current episode, step by step."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float]] = []
        self.lost_lives: list[int] = []

    def close(self, *, cut_value: float | None, scored_steps: int | None) -> Trace:
        """Return the episode's trace; it terminated if there is no `cut_value`."""
        rewards, values, spreads, agreements = np.array(self.rows, np.float64).T
        is_over, lost_lives = cut_value is None, tuple(self.lost_lives)
        self.rows, self.lost_lives = [], []
        return Trace(
            rewards, values, spreads, agreements, is_over, lost_lives, cut_value or 0.0, scored_steps
        )


def play(
    values_of: Callable[[Array], Array],
    lanes: Lanes,
    episodes: int,
    seed: int,
    epsilon: float = 0.0,
    *,
    pessimistic: bool,
    max_steps: int = MAX_STEPS,
    scored_steps: int | None = None,
) -> list[Trace]:
    """Play ε-greedily on the members' mean; `values_of` maps observations (N, …) to values (N, K, A).

    A `pessimistic` ensemble plays on its minimum.

    Each lane plays a fixed share of the episodes. To take the first ones to finish, whichever the lane,
    would favour short episodes.

    Episodes are whole games: where losing a life ends what is learnt from, the trace only notes it.
    Rewards after `scored_steps` do not count for the score.

    An episode is cut after `max_steps` agent steps, since not every environment has a time limit. A lane
    can't be reset singly, so one with a cut episode retires: the others play what is left of its share,
    and when none is left, all are reset.
    """
    quota = [episodes // lanes.n_lanes + (i < episodes % lanes.n_lanes) for i in range(lanes.n_lanes)]
    rng = np.random.default_rng(seed)
    notes = [_Notes() for _ in quota]
    traces: list[list[Trace]] = [[] for _ in quota]
    every_lane = np.arange(lanes.n_lanes)
    retired, owed, resets = np.zeros(lanes.n_lanes, bool), 0, 0
    observations, step = reset_lanes(lanes, seed), 0
    while any(len(done) < wanted for done, wanted in zip(traces, quota, strict=True)):
        q = values_of(observations)
        best = aggregate(q, 1, pessimistic=pessimistic).argmax(-1)
        actions = epsilon_greedy(best, len(best), lanes.n_actions, epsilon, rng)
        taken = step_lanes(lanes, actions, step, " of an evaluation")
        of_taken = q[every_lane, :, actions]
        agreements = (q.argmax(-1) == best[:, None]).mean(1)
        over = {episode.lane for episode in taken.episodes}
        expected = aggregate(of_taken, 1, pessimistic=pessimistic)
        columns = (taken.rewards, expected, of_taken.std(1), agreements)
        for lane, row in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if not taken.valid[lane] or retired[lane]:
                continue
            notes[lane].rows.append(row)
            ended = lane in over  # a lost life may terminate what is learnt from, and play goes on
            if taken.terminated[lane] and not ended:
                notes[lane].lost_lives.append(len(notes[lane].rows) - 1)
            if ended or len(notes[lane].rows) >= max_steps:
                cut_value = None
                if not taken.terminated[lane]:
                    last = values_of(taken.next_observations[lane : lane + 1])
                    cut_value = float(aggregate(last, 1, pessimistic=pessimistic).max())
                traces[lane].append(notes[lane].close(cut_value=cut_value, scored_steps=scored_steps))
                if not ended:
                    retired[lane] = True
                    left = max(quota[lane] - len(traces[lane]), 0)
                    quota[lane], owed = quota[lane] - left, owed + left
        observations, step = taken.observations, step + 1
        if owed:
            if retired.all():
                retired[:], resets = False, resets + 1
                observations = reset_lanes(lanes, _seed_of_reset(seed, resets))
            for _, heir in zip(range(owed), cycle(np.flatnonzero(~retired).tolist()), strict=False):
                quota[heir] += 1
            owed = 0
    return [trace for done, wanted in zip(traces, quota, strict=True) for trace in done[:wanted]]


def play_past_limit(
    values_of: Callable[[Array], Array],
    lanes: Lanes,
    episodes: int,
    seed: int,
    epsilon: float = 0.0,
    *,
    pessimistic: bool,
    extra_steps: int | None,
    max_steps: int | None = None,
) -> tuple[list[Trace], int | None]:
    """Play episodes that go on for `extra_steps` after the lanes' time limit, if they can.

    Also return the number of steps after which episodes are cut; None if it is not known. An environment
    that fails past its limit is played again within it.
    """
    limit, most = lanes.step_limit, max_steps or MAX_STEPS

    played = partial(play, values_of, lanes, episodes, seed, epsilon, pessimistic=pessimistic, max_steps=most)
    if limit is not None and extra_steps and limit + extra_steps <= most and lanes.extend_limit(extra_steps):
        try:
            return played(scored_steps=limit), limit + extra_steps
        except RunError:  # perhaps it cannot be stepped past its limit
            pass
        finally:
            lanes.extend_limit(0)
    known = [steps for steps in (limit, max_steps) if steps is not None]
    return played(), min(known, default=None)


def _seed_of_reset(seed: int, resets: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(resets,)).generate_state(1)[0])
