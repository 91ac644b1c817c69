"""Small MDPs with known values: the paper's Meta-Chain, bandits, and worlds of earlier papers."""

from collections.abc import Sequence

import numpy as np

from ebql.environments.exact.mdp import MDP, Decision
from ebql.errors import InputError

PAPER_MEANS = (-0.6, -0.4, -0.2, 0.2, 0.4, 0.6)

# Each chain has the four states A to D. In A the agent chooses RISKY (to B) or SAFE (to C).
A, B, C, D = range(4)
RISKY, SAFE = range(2)


def meta_chain(means: Sequence[float] = PAPER_MEANS, std: float = 1.0, actions: int = 10) -> MDP:
    """Return the Meta-Chain MDP (figure 4 of the paper); each episode runs in a random one of its chains.

    In chain `i` the agent starts in A. One action leads to C, where the episode ends, the other to B; both
    have reward 0. All `actions` of B lead to D, where the episode ends, with reward N(means[i], std²). The
    risky action is optimal exactly if `means[i] > 0`.

    >>> meta_chain().n_states  # six chains of four states
    24
    """
    means = [float(mean) for mean in means]
    if not means:
        raise InputError("meta_chain needs at least one mean.")
    if std < 0:
        raise InputError(f"std must not be negative, but it is {std}.")
    if actions < 1:
        raise InputError(f"actions must be at least 1, not {actions}.")
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
    """Return a Meta-Chain MDP with a single chain.

    >>> chain(-0.2).optimal_values(1.0)[0, :2].round(2).tolist()  # the risky action, and the safe one
    [-0.2, 0.0]
    """
    return meta_chain([mean], std, actions)


def sutton_barto_bias(actions: int = 10) -> MDP:
    """Return example 6.7 of Sutton and Barto (2018): a chain whose risky action loses 0.1 on average.

    >>> sutton_barto_bias().optimal_values(1.0)[0, :2].round(2).tolist()  # the risky action, and the safe one
    [-0.1, 0.0]
    """
    return chain(-0.1, 1.0, actions)


def maxmin_chain(mean: float = 0.1, actions: int = 8) -> MDP:
    """Return the MDP of Maxmin Q-learning (Lan et al., 2020): a chain whose risky action earns ±0.1.

    In the paper the reward is `mean` plus a uniform number from -1 to 1. Here it is Gaussian with the same
    standard deviation, 1 / √3. With a positive mean overestimation helps exploration, with a negative one it
    hurts.

    >>> maxmin_chain(-0.1).optimal_values(1.0)[0, :2].round(2).tolist()  # the risky action, and the safe one
    [-0.1, 0.0]
    """
    return chain(mean, 3**-0.5, actions)


def internet_ads(ads: int = 30, lowest: float = 0.02, highest: float = 0.05) -> MDP:
    """Return the internet ads of van Hasselt (2013) and D'Eramo et al. (2016): a bandit of click rates.

    The rates are spread evenly from `lowest` to `highest`; the papers draw them uniformly. A visitor clicks
    or not, so the reward has the standard deviation √(p (1 - p)) of a rate p; here it is Gaussian.

    >>> internet_ads(ads=4).optimal_values(1.0)[0].round(2).tolist()  # the rates
    [0.02, 0.03, 0.04, 0.05]
    """
    if ads < 1:
        raise InputError(f"ads must be at least 1, not {ads}.")
    if not 0 <= lowest <= highest <= 1:
        raise InputError(f"Rates must lie between 0 and 1, in order, not {lowest} and {highest}.")
    rates = np.linspace(lowest, highest, ads)
    return bandit(rates.tolist(), np.sqrt(rates * (1 - rates)).tolist())


def bandit(means: Sequence[float], stds: float | Sequence[float] = 1.0) -> MDP:
    """Return a bandit: one state, one arm per mean, reward N(means[a], stds[a]²), one step per episode.

    >>> bandit([0.0, 1.0]).optimal_values(1.0)[0].tolist()  # in its one state
    [0.0, 1.0]
    """
    centre = np.atleast_1d(np.asarray(means, dtype=np.float64))
    if centre.ndim != 1 or not centre.size:
        raise InputError("bandit needs at least one mean.")
    try:
        spread = np.broadcast_to(np.asarray(stds, dtype=np.float64), centre.shape)
    except ValueError:
        raise InputError(f"bandit needs one std, or one std per arm ({centre.size}).") from None
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


def repeated_bandit(
    means: Sequence[float], stds: float | Sequence[float] = 1.0, *, steps: int = 10_000
) -> MDP:
    """Return a bandit whose arms lead back to it, so that errors of the maximum feed back.

    It never terminates; an episode is truncated after `steps`. With a discount γ the state is worth
    max(means) / (1 - γ).

    >>> repeated_bandit([0.0, 1.0]).optimal_values(0.9)[0].round(6).tolist()  # 0 or 1 now, then 0.9 · 10
    [9.0, 10.0]
    """
    once = bandit(means, stds)
    return MDP(
        transitions=np.ones((1, once.n_actions, 1)),
        reward_means=once.reward_means[:1, :, 1],
        reward_stds=once.reward_stds[:1, :, 1],
        start=np.ones(1),
        terminals=np.zeros(1, dtype=bool),
        time_limit=steps,
        name=f"repeated bandit with {once.n_actions} arms",
    )


# A bet on one number of an American wheel: 35 in one of 38 cases, else -1.
ROULETTE_MEAN = -1 / 19
ROULETTE_STD = float(np.sqrt((35**2 + 37) / 38 - ROULETTE_MEAN**2))


def roulette(bets: int = 170, *, steps: int = 100_000) -> MDP:
    """Return van Hasselt's roulette (2010): `bets` ways to lose 1/19 on average, and one to walk away.

    A bet leads back to the table; walking away, the last action, ends the episode with 0 and is optimal.
    Every bet is on one number here, and its payoff is Gaussian with that bet's mean and standard deviation.

    >>> roulette(bets=36).n_actions  # and one to walk away
    37
    """
    if bets < 1:
        raise InputError(f"bets must be at least 1, not {bets}.")
    transitions, means, stds = np.zeros((2, bets + 1, 2)), np.zeros((2, bets + 1)), np.zeros((2, bets + 1))
    transitions[0, :bets, 0] = 1
    transitions[0, bets, 1] = 1
    means[0, :bets], stds[0, :bets] = ROULETTE_MEAN, ROULETTE_STD
    return MDP(
        transitions=transitions,
        reward_means=means,
        reward_stds=stds,
        start=np.array([1.0, 0.0]),
        terminals=np.array([False, True]),
        time_limit=steps,
        name="roulette",
    )


def noisy_grid(size: int = 3, mean: float = -1.0, std: float = 11.0, goal: float = 5.0) -> MDP:
    """Return van Hasselt's grid world (2010): start and goal in opposite corners of a square, noisy steps.

    The four actions move one cell, or not at all at a wall. A step earns N(mean, std²), and any action in the
    goal earns `goal` and ends the episode. In the paper a step earns -12 or +10 with equal chance: the same
    mean and standard deviation. Weighted double Q-learning was tried on larger ones.

    >>> round(float(noisy_grid().optimal_values(0.95).max(1)[0]), 2)
    0.36
    """
    if size < 2:
        raise InputError(f"size must be at least 2, not {size}.")
    cells = size * size
    transitions = np.zeros((cells + 1, 4, cells + 1))
    for cell in range(cells):
        row, column = divmod(cell, size)
        moves = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        for action, (to_row, to_column) in enumerate(moves):
            inside = 0 <= to_row < size and 0 <= to_column < size
            transitions[cell, action, to_row * size + to_column if inside else cell] = 1
    last = cells - 1
    transitions[last] = 0
    transitions[last, :, cells] = 1
    means, stds = np.full((cells + 1, 4), mean), np.full((cells + 1, 4), std)
    means[last], stds[last] = goal, 0
    return MDP(
        transitions=transitions,
        reward_means=means,
        reward_stds=stds,
        start=np.eye(cells + 1)[0],
        terminals=np.arange(cells + 1) == cells,
        name=f"noisy grid {size}×{size}",
    )
