"""The estimation bias: the ensemble's value of an action minus the return of the greedy policy.

For each state that the greedy policy visits, Q̂(s, a) is the members' mean value of the action taken (for
Maxmin, their minimum). It is compared with the discounted return from that state, with the rewards, the
discount and the ends of episodes that the agent learns with.

A time limit hides the rest of a return. Let H be the number of steps after which γᴴ is below the tolerance.
A state counts only if it lies at least H steps before the limit. This holds in all episodes: counting the
last states of terminated episodes only would select on the outcome. The rest of a return after a cut, h ≥ H
steps later, is replaced by the agent's own estimate, whose error is multiplied by γʰ ≤ tolerance.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ebql.deep.evaluation.rollout import Trace
from ebql.deep.replay.n_step import learnt_rewards

Method = Literal["complete", "continued", "dropped", "shortest-cut", "bootstrapped"]

TOLERANCE = 0.01
"""The largest weight γʰ that an estimated value at a cut may have in a return."""


@dataclass(frozen=True)
class Bias:
    """Q̂ minus return over the states that count; values are None if no state counts.

    All values but `normalised`, `deviation`, `agreement` and the counts are in units of the reward.

    >>> from ebql import DQN
    >>> bias = DQN("CartPole-v1", seed=0).measure_bias(episodes=5)
    >>> abs(bias.mean - (bias.value - bias.discounted_return)) < 1e-5
    True
    >>> bias.explanation
    'Episodes continued for up to 459 steps past the time limit, so every return is complete.'
    """

    mean: float | None
    """The mean of Q̂(s, a) − return: positive if the agent overestimates."""
    standard_error: float | None
    """The standard error of the mean. Episodes are the samples: states of one episode are not independent."""
    absolute: float | None
    """The mean of |Q̂(s, a) − return|."""
    normalised: float | None
    """The mean bias divided by the mean absolute return."""
    deviation: float | None
    """The standard deviation of Q̂(s, a) − return over states, divided by |mean return|."""
    value: float | None
    """The mean of Q̂(s, a)."""
    discounted_return: float | None
    """The mean of the returns that Q̂ is compared with."""
    spread: float | None
    """The mean standard deviation of Q̂(s, a) over members."""
    agreement: float | None
    """The mean share of members whose greedy action is that of the ensemble."""
    states: int
    """States compared."""
    dropped: int
    """States dropped because they lie too close to the time limit."""
    method: Method
    """How time limits were handled; `explanation` says it in words."""
    limit: int | None
    """Agent steps after which episodes are cut; None if no such number is known."""
    horizon: int | None
    """H: states fewer than H steps before the limit are dropped; None if γᴴ never falls to the tolerance."""
    bootstrapped: float
    """The mean of γʰ |V̂(cut)|, the estimated part of the returns; 0 if no episode was cut."""

    @property
    def explanation(self) -> str:
        """How time limits were handled, in words."""
        sentences: dict[Method, str] = {
            "complete": "Every return is complete.",
            "continued": f"Episodes continued for up to {self.horizon} steps past the time limit, "
            "so every return is complete.",
            "dropped": f"{self.dropped} states were dropped: they lie fewer than {self.horizon} steps before "
            f"the time limit of {self.limit} steps.",
            "shortest-cut": "The time limit is unknown, so the length of the cut episodes was used: "
            f"{self.dropped} states were dropped because they lie fewer than {self.horizon} steps before "
            f"step {self.limit}.",
            "bootstrapped": "No state lies far enough before the time limit, so returns were completed with "
            f"the agent's own estimates. These contribute {self.bootstrapped:.3g} on average and pull the "
            "measured bias towards 0.",
        }
        if self.method == "bootstrapped" and self.limit is None:
            return (
                "Some episodes were cut after fewer steps than others took, so no unbiased measurement is "
                "possible without continuing them. Returns were completed with the agent's own estimates, "
                f"which contribute {self.bootstrapped:.3g} on average and pull the measured bias towards 0."
            )
        return sentences[self.method]


def horizon(discount: float, tolerance: float = TOLERANCE) -> int | None:
    """Return H, the smallest number of steps with γᴴ ≤ tolerance; None if there is none."""
    if tolerance == 1 or discount == 0:
        return 0 if tolerance == 1 else 1
    if discount == 1 or tolerance == 0:
        return None
    steps = math.ceil(math.log(tolerance) / math.log(discount))
    return steps if discount**steps <= tolerance else steps + 1  # the logarithms were rounded


def discounted_returns(
    rewards: NDArray[np.float64], discount: float, lost_lives: Collection[int] = (), after: float = 0.0
) -> NDArray[np.float64]:
    """Return Σᵢ γⁱ r_{t+i} up to the end of the episode, for each step t of rewards (T,).

    Returns end at the steps `lost_lives`: later rewards do not count for earlier steps. `after` is the value
    of the state after the last step.
    """
    returns = np.empty_like(rewards)
    following = after
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] + (0.0 if t in lost_lives else discount * following)
        returns[t] = following
    return returns


def measured_bias(
    traces: Sequence[Trace],
    discount: float,
    reward_clip: float | None = None,
    tolerance: float = TOLERANCE,
    *,
    limit: int | None = None,
    reward_scale: float = 1.0,
) -> Bias:
    """Compare the ensemble's values with the returns of these episodes.

    Values are those of scaled and clipped rewards, and so are the returns and their difference.
    `limit` is the number of steps after which episodes are cut, if it is known. If it is not, the length of
    the cut episodes is used, provided that they are all equally long and that no episode is longer. If there
    is no such limit, or no state is far enough from it, all states count, however large the estimated part
    of their return.
    """
    limit, is_known = _limit_of(traces, limit)
    h = horizon(discount, tolerance)
    was_cut = not all(trace.terminated for trace in traces)
    n_counted = _n_counted(limit, h)
    method: Method
    if n_counted == 0 or (limit is None and was_cut):
        method, n_counted = "bootstrapped" if was_cut else "complete", None
    elif is_known and traces and traces[0].scored_steps is not None:
        method = "continued"
    elif n_counted is None or all(trace.terminated and len(trace.rewards) <= n_counted for trace in traces):
        method = "complete"
    else:
        method = "dropped" if is_known else "shortest-cut"
    if reward_scale != 1 or reward_clip is not None:
        traces = [
            replace(trace, rewards=learnt_rewards(trace.rewards, reward_scale, reward_clip))
            for trace in traces
        ]
    return _compared(traces, discount, method, n_counted, limit, h)


def _limit_of(traces: Sequence[Trace], limit: int | None) -> tuple[int | None, bool]:
    """Return the steps after which episodes are cut, if that is a single number, and whether it was known."""
    cuts = {len(trace.rewards) for trace in traces if not trace.terminated}
    if limit is not None and all(cut >= limit for cut in cuts):
        return limit, True
    # An episode that goes on where another was cut shows that the cut was no time limit.
    longest = max((len(trace.rewards) for trace in traces), default=0)
    return (longest if cuts == {longest} else None), False


def _n_counted(limit: int | None, h: int | None) -> int | None:
    """Return how many states of an episode lie at least `h` steps before the limit; None if all count."""
    if limit is None:
        return None
    return 0 if h is None else max(limit - h + 1, 0)


def _compared(
    traces: Sequence[Trace],
    discount: float,
    method: Method,
    n_counted: int | None,
    limit: int | None,
    h: int | None,
) -> Bias:
    """Return the bias over the first `n_counted` states of each episode."""
    differences: list[NDArray[np.float64]] = []
    columns, dropped = [], 0
    for trace in traces:
        rewards = trace.rewards
        lost_lives = frozenset(trace.lost_lives)
        returns = discounted_returns(rewards, discount, lost_lives, trace.cut_value)
        tails = discounted_returns(np.zeros_like(rewards), discount, lost_lives, abs(trace.cut_value))
        dropped += len(rewards[n_counted : trace.length]) if n_counted is not None else 0
        kept = slice(n_counted)
        differences.append((trace.values - returns)[kept])
        rows = (trace.values, returns, np.abs(returns), trace.spreads, trace.agreements, tails)
        columns.append(np.stack([row[kept] for row in rows]))
    errors = np.concatenate(differences) if differences else np.empty(0)
    if not len(errors):
        return Bias(*(None,) * 9, 0, dropped, method, limit, h, 0.0)
    value, returned, magnitude, spread, agreement, tail = np.concatenate(columns, 1).mean(1).tolist()
    mean = float(errors.mean())
    return Bias(
        mean=mean,
        standard_error=_standard_error(differences, mean),
        absolute=float(np.abs(errors).mean()),
        normalised=mean / magnitude if magnitude > 0 else None,
        deviation=float(errors.std()) / abs(returned) if returned else None,
        value=value,
        discounted_return=returned,
        spread=spread,
        agreement=agreement,
        states=len(errors),
        dropped=dropped,
        method=method,
        limit=limit,
        horizon=h,
        bootstrapped=tail,
    )


def _standard_error(by_episode: Sequence[NDArray[np.float64]], mean: float) -> float | None:
    """Return the standard error of a mean over states, where episodes are the independent samples."""
    residuals = np.array([(errors - mean).sum() for errors in by_episode if len(errors)])
    n_states = sum(len(errors) for errors in by_episode)
    if len(residuals) < 2:
        return None
    correction = len(residuals) / (len(residuals) - 1)
    return float(np.sqrt(correction * (residuals**2).sum()) / n_states)
