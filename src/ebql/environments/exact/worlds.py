"""The worlds of the paper and its neighbours, as exactly known MDPs."""

from collections.abc import Sequence

import numpy as np

from ebql.environments.exact.mdp import MDP, Decision
from ebql.errors import InputError

PAPER_MEANS = (-0.6, -0.4, -0.2, 0.2, 0.4, 0.6)

# Each chain has four states, in this order; A's actions are RISKY (to B) and SAFE (to C).
A, B, C, D = range(4)
RISKY, SAFE = range(2)


def meta_chain(means: Sequence[float] = PAPER_MEANS, std: float = 1.0, actions: int = 10) -> MDP:
    """Return the Meta-Chain MDP (the paper's figure 4): each episode one of several chains, at random.

    In chain `i` the agent starts in A. One action leads to C, where the episode ends; the other to B.
    Neither pays. All `actions` of B lead to D and pay N(means[i], std²): risk is worth it exactly when
    `means[i] > 0`.
    """
    means = [float(mean) for mean in means]
    if not means:
        raise InputError("meta_chain needs at least one mean.")
    if std < 0:
        raise InputError(f"std must not be negative; it is {std}.")
    if actions < 1:
        raise InputError(f"B needs at least one action, not {actions}.")
    n_states, n_actions = 4 * len(means), max(2, actions)
    transitions = np.zeros((n_states, n_actions, n_states))
    reward_means = np.zeros((n_states, n_actions))
    reward_stds = np.zeros((n_states, n_actions))
    for chain, mean in enumerate(means):
        first = 4 * chain
        transitions[first + A, RISKY, first + B] = 1
        transitions[first + A, SAFE, first + C] = 1
        transitions[first + B, :actions, first + D] = 1
        reward_means[first + B] = mean
        reward_stds[first + B] = std
    return MDP(
        transitions=transitions,
        reward_means=reward_means,
        reward_stds=reward_stds,
        start=np.tile([1.0 / len(means), 0, 0, 0], len(means)),
        terminals=np.tile([False, False, True, True], len(means)),
        action_counts=np.tile([2, actions, 1, 1], len(means)),
        decisions=tuple(Decision(f"mean {mean:+g}", 4 * i + A, RISKY, mean) for i, mean in enumerate(means)),
        name="meta-chain" if len(means) > 1 else f"chain {means[0]:+g}",
    )


def chain(mean: float, std: float = 1.0, actions: int = 10) -> MDP:
    """Return one chain of the Meta-Chain MDP."""
    return meta_chain([mean], std, actions)


def sutton_barto_bias(actions: int = 10) -> MDP:
    """Return example 6.7 of Sutton and Barto (2018): a chain whose risk costs 0.1 on average."""
    return chain(-0.1, 1.0, actions)


def bandit(means: Sequence[float], stds: float | Sequence[float] = 1.0) -> MDP:
    """Return one state with an arm per mean; every pull pays N(means[a], stds[a]²) and ends the episode."""
    centre = np.atleast_1d(np.asarray(means, dtype=np.float64))
    if centre.ndim != 1 or not centre.size:
        raise InputError("bandit needs at least one mean.")
    try:
        spread = np.broadcast_to(np.asarray(stds, dtype=np.float64), centre.shape)
    except ValueError:
        raise InputError(f"bandit needs one std, or one per arm ({centre.size}).") from None
    transitions = np.zeros((2, centre.size, 2))
    transitions[0, :, 1] = 1
    return MDP(
        transitions=transitions,
        reward_means=np.stack([centre, np.zeros_like(centre)]),
        reward_stds=np.stack([spread, np.zeros_like(spread)]),
        start=np.array([1.0, 0.0]),
        terminals=np.array([False, True]),
        name=f"bandit with {centre.size} arms",
    )
