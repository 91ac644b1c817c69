"""The estimation bias, measured: what the members expect against what the policy then earns.

For each state on the path of the current policy, Q̂(s, a) is the members' mean value of the action taken
(of Maxmin, their minimum), and its reference the discounted return from there on: with the reward, the
discount and the end of an episode that the agent learns with. The return of a policy that explores less
than the one in training is the right reference, since Q-learning estimates the greedy policy.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ebql.deep.playing import Trace


@dataclass(frozen=True)
class Bias:
    """Expected minus earned, over the states that were kept; None where too few were."""

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
    """States left out, because a time limit cut more than the tolerance off their return."""


def discounted_returns(
    rewards: NDArray[np.float64], discount: float, lost_lives: Collection[int] = ()
) -> NDArray[np.float64]:
    """Return Σᵢ γⁱ r_{t+i} up to the end of the episode, for each step t of rewards (T,).

    Nothing that comes after one of the steps `lost_lives` counts for what comes before it.
    """
    returns = np.empty_like(rewards)
    following = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] + (0.0 if t in lost_lives else discount * following)
        returns[t] = following
    return returns


def measured_bias(
    traces: Sequence[Trace], discount: float, reward_clip: float | None = None, tolerance: float = 0.01
) -> Bias:
    """Compare expected and earned over episodes.

    Where a lost life ends what is learnt from, it also ends the return that values are compared with. An
    episode that a time limit cut after h more steps would have earned γʰ times the value of where it
    was cut: states with γʰ > `tolerance` are dropped.
    """
    kept_differences, kept_columns, dropped = [], [], 0
    for trace in traces:
        rewards = trace.rewards
        if reward_clip is not None:
            rewards = rewards.clip(-reward_clip, reward_clip)
        returns = discounted_returns(rewards, discount, frozenset(trace.lost_lives))
        remaining = np.arange(len(rewards), 0, -1)
        keep = np.full(len(rewards), True) if trace.terminated else discount**remaining <= tolerance
        if trace.lost_lives:  # up to the last of them, the returns are whole
            keep[: trace.lost_lives[-1] + 1] = True
        dropped += int(np.count_nonzero(~keep))
        kept_differences.append((trace.values - returns)[keep])
        columns = (trace.values, returns, np.abs(returns), trace.spreads, trace.agreements)
        kept_columns.append(np.stack([column[keep] for column in columns]))
    differences = np.concatenate(kept_differences) if kept_differences else np.empty(0)
    if not len(differences):
        return Bias(None, None, None, None, None, None, None, None, 0, dropped)
    value, returned, magnitude, spread, agreement = np.concatenate(kept_columns, 1).mean(1).tolist()
    mean = float(differences.mean())
    return Bias(
        mean=mean,
        standard_error=_standard_error(kept_differences, mean),
        absolute=float(np.abs(differences).mean()),
        normalised=mean / magnitude if magnitude > 0 else None,
        value=value,
        discounted_return=returned,
        spread=spread,
        agreement=agreement,
        states=len(differences),
        dropped=dropped,
    )


def _standard_error(by_episode: Sequence[NDArray[np.float64]], mean: float) -> float | None:
    """Return the standard error of a mean over states whose episodes are the independent samples."""
    residuals = np.array([(own - mean).sum() for own in by_episode if len(own)])
    n_states = sum(len(own) for own in by_episode)
    if len(residuals) < 2:
        return None
    correction = len(residuals) / (len(residuals) - 1)
    return float(np.sqrt(correction * (residuals**2).sum()) / n_states)
