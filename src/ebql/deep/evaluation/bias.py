"""The estimation bias: what the members expect minus what the greedy policy then earns.

For each state on the path of the greedy policy, Q̂(s, a) is the members' mean value of the action taken (for
Maxmin their minimum). Its reference is the discounted return from there on, with the reward, the discount and
the end of an episode that the agent learns with.

A time limit hides the rest of a return. Let H be the number of steps after which γᴴ is below the tolerance.
A state counts only if it lies at least H steps before the limit, in every episode, terminated or not: to keep
the last states of terminated episodes alone would select on the outcome. What a counted return still misses,
γʰ of the value of the state at the cut with h ≥ H, is the agent's own estimate: an error there counts for the
share γʰ at most.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ebql.deep.evaluation.rollout import Trace

Method = Literal["complete", "continued", "dropped", "shortest-cut", "bootstrapped"]

TOLERANCE = 0.01
"""The share γʰ of the value at a cut that may be estimated instead of earned."""


@dataclass(frozen=True)
class Bias:
    """Expected minus earned, over the states that count; None where no state counts."""

    mean: float | None
    """The mean of Q̂(s, a) − return: positive if the agent overestimates."""
    standard_error: float | None
    """Of the mean; states of one episode are not independent, so episodes count as the samples."""
    absolute: float | None
    """The mean of |Q̂(s, a) − return|."""
    normalised: float | None
    """The mean bias over the mean absolute value of the return."""
    value: float | None
    """The mean of Q̂(s, a)."""
    discounted_return: float | None
    """The mean of the return that Q̂ is compared with."""
    spread: float | None
    """The mean standard deviation of Q̂(s, a) over members."""
    agreement: float | None
    """The mean share of members whose own best action is the ensemble's."""
    states: int
    """States compared."""
    dropped: int
    """States left out because they lie too close to the time limit."""
    method: Method
    """How time limits were dealt with; `explanation` says it in words."""
    limit: int | None
    """Agent steps after which episodes were cut; None if no limit is known and none was met."""
    horizon: int | None
    """H, the steps before the limit from which on a state is dropped; None if γᴴ never falls so far."""
    bootstrapped: float
    """The mean of γʰ |V̂(cut)|, the part of the return that is the agent's own estimate; 0 if none was cut."""

    @property
    def explanation(self) -> str:
        """How time limits were dealt with, in one sentence."""
        sentences: dict[Method, str] = {
            "complete": "Every return is complete.",
            "continued": f"Episodes went on past the time limit for up to {self.horizon} steps, "
            "so that every return is complete.",
            "dropped": f"{self.dropped} states were dropped: they lie fewer than {self.horizon} steps before "
            f"the time limit of {self.limit} steps.",
            "shortest-cut": "The time limit is unknown, so the shortest cut episode stands for it: "
            f"{self.dropped} states were dropped that lie fewer than {self.horizon} steps before step "
            f"{self.limit}.",
            "bootstrapped": "No state lies far enough before the time limit, so returns were completed with "
            f"the agent's own estimates. They contribute {self.bootstrapped:.3g} on average and draw the "
            "measured bias towards 0.",
        }
        if self.method == "bootstrapped" and self.limit is None:
            return (
                "Episodes were cut after different numbers of steps, so no unbiased measurement is possible "
                "without continuing them. Returns were completed with the agent's own estimates, which "
                f"contribute {self.bootstrapped:.3g} on average and draw the measured bias towards 0."
            )
        return sentences[self.method]


def horizon(discount: float, tolerance: float = TOLERANCE) -> int | None:
    """Return H, the least number of steps with γᴴ ≤ tolerance; None if there is none."""
    if tolerance == 1 or discount == 0:
        return 0 if tolerance == 1 else 1
    if discount == 1 or tolerance == 0:
        return None
    steps = math.ceil(math.log(tolerance) / math.log(discount))
    return steps if discount**steps <= tolerance else steps + 1  # rounding of the logarithms


def discounted_returns(
    rewards: NDArray[np.float64], discount: float, lost_lives: Collection[int] = (), after: float = 0.0
) -> NDArray[np.float64]:
    """Return Σᵢ γⁱ r_{t+i} up to the end of the episode, for each step t of rewards (T,).

    Nothing that comes after one of the steps `lost_lives` counts for what comes before it. `after` is the
    value of the state after the last step.
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
) -> Bias:
    """Compare expected and earned over episodes.

    `limit` is the number of steps after which episodes are cut, where it is known. Where it is not, the
    shortest cut episode stands for it, provided that all cut episodes are equally long. Where no state is
    far enough from the limit, all states count, however large the estimated part of their return.
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
    return _compared(traces, discount, reward_clip, method, n_counted, limit, h)


def _limit_of(traces: Sequence[Trace], limit: int | None) -> tuple[int | None, bool]:
    """Return the steps after which episodes are cut, if that is one number, and whether it was known."""
    cuts = {len(trace.rewards) for trace in traces if not trace.terminated}
    if limit is not None and all(cut >= limit for cut in cuts):
        return limit, True
    return (cuts.pop() if len(cuts) == 1 else None), False


def _n_counted(limit: int | None, h: int | None) -> int | None:
    """Return how many first states of each episode lie at least `h` steps before the limit; None: all."""
    if limit is None:
        return None
    return 0 if h is None else max(limit - h + 1, 0)


def _compared(
    traces: Sequence[Trace],
    discount: float,
    reward_clip: float | None,
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
        if reward_clip is not None:
            rewards = rewards.clip(-reward_clip, reward_clip)
        lost_lives = frozenset(trace.lost_lives)
        returns = discounted_returns(rewards, discount, lost_lives, trace.cut_value)
        tails = discounted_returns(np.zeros_like(rewards), discount, lost_lives, abs(trace.cut_value))
        dropped += len(rewards[n_counted : trace.length]) if n_counted is not None else 0
        kept = slice(n_counted)
        differences.append((trace.values - returns)[kept])
        rows = (trace.values, returns, np.abs(returns), trace.spreads, trace.agreements, tails)
        columns.append(np.stack([row[kept] for row in rows]))
    found = np.concatenate(differences) if differences else np.empty(0)
    if not len(found):
        return Bias(*(None,) * 8, 0, dropped, method, limit, h, 0.0)
    value, returned, magnitude, spread, agreement, tail = np.concatenate(columns, 1).mean(1).tolist()
    mean = float(found.mean())
    return Bias(
        mean=mean,
        standard_error=_standard_error(differences, mean),
        absolute=float(np.abs(found).mean()),
        normalised=mean / magnitude if magnitude > 0 else None,
        value=value,
        discounted_return=returned,
        spread=spread,
        agreement=agreement,
        states=len(found),
        dropped=dropped,
        method=method,
        limit=limit,
        horizon=h,
        bootstrapped=tail,
    )


def _standard_error(by_episode: Sequence[NDArray[np.float64]], mean: float) -> float | None:
    """Return the standard error of a mean over states whose episodes are the independent samples."""
    residuals = np.array([(own - mean).sum() for own in by_episode if len(own)])
    n_states = sum(len(own) for own in by_episode)
    if len(residuals) < 2:
        return None
    correction = len(residuals) / (len(residuals) - 1)
    return float(np.sqrt(correction * (residuals**2).sum()) / n_states)
