"""Finite Markov decision processes with a known model, so that their values can be computed exactly."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ebql.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """A tracked state in which the agent chooses between one risky action and safe ones.

    >>> from ebql.environments import meta_chain
    >>> meta_chain().decisions[0]
    Decision(name='mean -0.6', state=0, risky_action=0, mean=-0.6)
    """

    name: str
    """What figures call it."""
    state: int
    """The number of the state."""
    risky_action: int
    """The number of the action that leads to the noisy rewards."""
    mean: float
    """The expected reward of the risky action. The risk pays if it is positive."""


class Model(NamedTuple):
    """An `MDP` as flat arrays for a compiled loop; `M` is the largest number of successors.

    Only successors of positive probability are stored. The cost of a step therefore depends on the number
    of successors, not on the number of states.
    """

    successors: NDArray[np.int64]  # (S, A, M)
    cumulative: Floats  # (S, A, M), the last entry of each row is 1
    reward_means: Floats  # (S, A, M)
    reward_stds: Floats  # (S, A, M)
    start_states: NDArray[np.int64]  # (number of start states,)
    start_cumulative: Floats  # (number of start states,), probabilities of the start states
    terminals: NDArray[np.bool_]  # (S,)
    action_counts: NDArray[np.int64]  # (S,)


@dataclass(frozen=True, eq=False)
class MDP:
    """A finite MDP with Gaussian rewards.

    It has `S` states and up to `A` actions. The actions of state `s` are `0 .. action_counts[s] - 1`, or
    those of its `action_masks`; array entries of other actions are ignored. An episode terminates when it
    enters a terminal state, and is truncated after `time_limit` steps.

    Args:
        transitions: `(S, A, S)`, P(next state | state, action).
        reward_means: `(S, A)` or `(S, A, S)`, mean reward of a step.
        reward_stds: scalar, `(S, A)` or `(S, A, S)`, standard deviation of that reward.
        start: `(S,)`, distribution of the first state.
        terminals: `(S,)` of bool.
        action_counts: `(S,)`, by default `A` everywhere.
        decisions: the states that experiments track.
        time_limit: steps after which an episode is truncated; None for no limit.
        name: shown in messages and figures.
        action_masks: `(S, A)` of bool, the actions of each state, if they are not always the first ones.

    >>> coin = MDP(  # state 0: stop, or flip a coin that stops with probability 1/2; state 1 is the end
    ...     transitions=np.array([[[0.0, 1.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]]),
    ...     reward_means=np.array([[0.0, 1.0], [0.0, 0.0]]),
    ...     reward_stds=np.zeros(()),
    ...     start=np.array([1.0, 0.0]),
    ...     terminals=np.array([False, True]),
    ... )
    >>> coin.optimal_values(1.0)[0].round(6).tolist()  # stop, and flip: 1 + 1/2 + 1/4 + …
    [0.0, 2.0]
    """

    transitions: Floats
    reward_means: Floats
    reward_stds: Floats
    start: Floats
    terminals: NDArray[np.bool_]
    action_counts: NDArray[np.int64] = field(default=None)  # type: ignore[arg-type]
    decisions: tuple[Decision, ...] = ()
    time_limit: int | None = None
    name: str = "MDP"
    action_masks: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        transitions = _floats("transitions", self.transitions)
        if transitions.ndim != 3 or transitions.shape[0] != transitions.shape[2]:
            raise InputError(f"transitions must have shape (S, A, S), not {transitions.shape}.")
        n_states, n_actions, _ = transitions.shape
        if self.action_masks is not None:
            masks = np.asarray(self.action_masks, dtype=np.bool_)
            object.__setattr__(self, "action_masks", masks)
            if masks.shape != (n_states, n_actions):
                raise InputError(f"action_masks must have shape {(n_states, n_actions)}, not {masks.shape}.")
        counts = self.action_counts
        if counts is None:
            every = np.ones((n_states, n_actions)) if self.action_masks is None else self.action_masks
            counts = every.sum(-1)
        normalised = {
            "transitions": transitions,
            "reward_means": _rewards("reward_means", self.reward_means, transitions.shape),
            "reward_stds": _rewards("reward_stds", self.reward_stds, transitions.shape),
            "start": _floats("start", self.start),
            "terminals": np.asarray(self.terminals, dtype=np.bool_),
            "action_counts": np.asarray(counts, dtype=np.int64),
        }
        for name, array in normalised.items():
            object.__setattr__(self, name, array)
        self._check(n_states, n_actions)

    def _check(self, n_states: int, n_actions: int) -> None:
        for name in ("start", "terminals", "action_counts"):
            if getattr(self, name).shape != (n_states,):
                raise InputError(f"{name} must have shape ({n_states},), not {getattr(self, name).shape}.")
        if self.action_masks is not None:
            if np.any(self.action_masks.sum(-1) != self.action_counts):
                raise InputError("action_masks and action_counts disagree: give one of them.")
            if np.any(empty := ~self.action_masks.any(-1)):
                raise InputError(f"The action mask of state {empty.argmax()} leaves no action.")
        if np.any(self.action_counts < 1) or np.any(self.action_counts > n_actions):
            raise InputError(f"action_counts must lie between 1 and {n_actions}.")
        if np.any(self.reward_stds < 0):
            raise InputError("reward_stds must not be negative.")
        if np.any(self.start < 0) or not _is_one(self.start.sum()):
            raise InputError(f"start must be a distribution, but it sums to {self.start.sum():.6g}.")
        if np.any(self.terminals & (self.start > 0)):
            raise InputError("start must give terminal states probability 0.")
        if self.time_limit is not None and self.time_limit < 1:
            raise InputError(f"time_limit must be at least 1, not {self.time_limit}.")
        rows = self.transitions[self.playable]
        bad = np.flatnonzero((rows < 0).any(-1) | ~_is_one(rows.sum(-1)))
        if bad.size:
            state, action = np.argwhere(self.playable)[bad[0]]
            raise InputError(
                f"The transition row of state {state}, action {action} must be a distribution, "
                f"but it sums to {rows[bad[0]].sum():.9g}."
            )
        for decision in self.decisions:
            state, action = decision.state, decision.risky_action
            if not (0 <= state < n_states and 0 <= action < n_actions and self.playable[state, action]):
                raise InputError(f"Decision {decision.name!r} refers to an action that does not exist.")

    @property
    def n_states(self) -> int:
        """Number of states, including terminal ones."""
        return len(self.transitions)

    @property
    def n_actions(self) -> int:
        """Largest number of actions in any state."""
        return int(self.transitions.shape[1])

    @cached_property
    def playable(self) -> NDArray[np.bool_]:
        """`(S, A)`: which actions exist; none do in terminal states."""
        return self.exists & ~self.terminals[:, None]

    @cached_property
    def exists(self) -> NDArray[np.bool_]:
        """`(S, A)`: the actions of each state; those of terminal states are never taken."""
        if self.action_masks is not None:
            return self.action_masks
        first: NDArray[np.bool_] = np.arange(self.n_actions) < self.action_counts[:, None]
        return first

    @cached_property
    def legal_actions(self) -> NDArray[np.int64] | None:
        """`(S, A)`: the first `action_counts[s]` entries are the actions of state `s`, in order.

        None if they are `0 .. action_counts[s] - 1` in every state.
        """
        if self.action_masks is None:
            return None
        return np.argsort(~self.action_masks, axis=-1, kind="stable")

    @cached_property
    def expected_rewards(self) -> Floats:
        """`(S, A)`: expected reward of a step; zero where the action does not exist."""
        expected = np.einsum("ijk,ijk->ij", self.transitions, self.reward_means)
        return np.where(self.playable, expected, 0.0)

    @cached_property
    def model(self) -> Model:
        """The same MDP as arrays for the compiled loop."""
        possible = (self.transitions > 0) & self.playable[:, :, None]
        branching = max(1, int(possible.sum(-1).max()))
        # A stable sort on "impossible" brings each row's successors to its front, in state order.
        order = np.argsort(~possible, axis=-1, kind="stable")[:, :, :branching]
        probabilities = np.take_along_axis(np.where(possible, self.transitions, 0.0), order, -1)
        starts = np.flatnonzero(self.start > 0)
        return Model(
            successors=order,
            cumulative=_cumulative(probabilities),
            reward_means=np.take_along_axis(self.reward_means, order, -1),
            reward_stds=np.take_along_axis(self.reward_stds, order, -1),
            start_states=starts,
            start_cumulative=_cumulative(self.start[starts]),
            terminals=self.terminals,
            action_counts=self.action_counts,
        )

    def optimal_values(
        self, discount: float, *, tolerance: float = 1e-12, max_sweeps: int = 300_000
    ) -> Floats:
        """Return Q*, `(S, A)`, by value iteration; NaN where an action does not exist.

        Applies the Bellman operator until no state value changes by more than `tolerance`.
        """
        _check_discount(discount)
        values = np.zeros(self.n_states)
        for _ in range(max_sweeps):
            q = self._backup(values, discount)
            updated = np.where(self.terminals, 0.0, np.where(self.playable, q, -np.inf).max(-1))
            if np.abs(updated - values).max() <= tolerance:
                return self._mask_missing(q)
            values = updated
        raise InputError(f"Value iteration did not converge in {max_sweeps} sweeps: use a discount below 1.")

    def policy_values(self, policy: ArrayLike, discount: float) -> Floats:
        """Return Q, `(S, A)`, of a `policy` given as action probabilities `(S, A)`, by one linear solve.

        Entries are NaN where an action does not exist.
        """
        _check_discount(discount)
        weights = _floats("policy", policy)
        if weights.shape != self.playable.shape:
            raise InputError(f"policy must have shape (S, A) = {self.playable.shape}, not {weights.shape}.")
        weights = np.where(self.playable, weights, 0.0)
        running = ~self.terminals
        if np.any(weights < 0) or not np.allclose(weights[running].sum(-1), 1):
            raise InputError("policy must be a distribution over actions in every non-terminal state.")
        steps = np.einsum("ij,ijk->ik", weights, self.transitions)
        if discount == 1 and not reachable(self.terminals, steps.T > 0).all():
            raise InputError("An episode may never end under this policy: use a discount below 1.")
        chain = steps[np.ix_(running, running)]
        rewards = (weights * self.expected_rewards).sum(-1)[running]
        values = np.zeros(self.n_states)
        values[running] = np.linalg.solve(np.eye(len(chain)) - discount * chain, rewards)
        return self._mask_missing(self._backup(values, discount))

    def _backup(self, values: Floats, discount: float) -> Floats:
        """Return the one-step lookahead, `(S, A)`; terminal states have value 0."""
        next_values: Floats = self.transitions @ np.where(self.terminals, 0.0, values)
        return np.where(self.playable, self.expected_rewards + discount * next_values, 0.0)

    def _mask_missing(self, q: Floats) -> Floats:
        """Return `q` with NaN for actions that do not exist."""
        return np.where(self.playable | self.terminals[:, None], q, np.nan)


def reachable(start: NDArray[np.bool_], steps: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the states, `(S,)` of bool, that are reachable from `start` by transitions `steps`, `(S, S)`."""
    reached = start.copy()
    while np.any(new := steps[reached].any(0) & ~reached):
        reached |= new
    return reached


def _is_one(sums: Floats | np.float64) -> NDArray[np.bool_]:
    return np.isclose(sums, 1, rtol=0, atol=1e-8)


def _check_discount(discount: float) -> None:
    if not 0 <= discount <= 1:
        raise InputError(f"discount must lie between 0 and 1, not {discount}.")


def _floats(name: str, array: ArrayLike) -> Floats:
    values = np.asarray(array, dtype=np.float64)
    if not np.isfinite(values).all():
        raise InputError(f"{name} must be finite.")
    return values


def _rewards(name: str, array: ArrayLike, shape: tuple[int, ...]) -> Floats:
    values = _floats(name, array)
    try:
        if values.ndim == 1:  # would broadcast over next states
            raise ValueError
        return np.broadcast_to(values[..., None] if values.ndim == 2 else values, shape)
    except ValueError:
        raise InputError(
            f"{name} must have shape (S, A) = {shape[:2]} or (S, A, S), not {values.shape}."
        ) from None


def _cumulative(probabilities: Floats) -> Floats:
    """Return cumulative sums along the last axis; they end at exactly 1, above any uniform sample."""
    sums = np.cumsum(probabilities, axis=-1)
    remaining = np.cumsum(probabilities[..., ::-1], axis=-1)[..., ::-1] - probabilities
    return np.where(remaining <= 0, 1.0, sums)
