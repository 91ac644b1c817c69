"""Worlds for tables whose values are known exactly, and what is measured of tables that learn in them.

At each record, with Q̄ the mean of an agent's members (of Maxmin, their minimum), π its greedy policy (ties
broken at random) and d the distribution of the first state:

value
    Σ d(s) V^π(s): what the greedy policy earns on average, discounted, exactly.
correct
    Probability that π's action is optimal, averaged over the followed states: the world's own decisions, or,
    if it names none, the states that an optimal policy may pass.
bias
    Σ d(s) [max_a Q̄(s, a) − V^π(s)]: how much more the agent expects than its own policy earns.
bias_optimal
    Σ d(s) [max_a Q̄(s, a) − V*(s)]: the same against the best that could be earned.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP, Decision, MDPEnv, make_environment, mdp_from_gymnasium
from ebql.environments.exact.mdp import reachable
from ebql.errors import InputError, InputTypeError

Floats = NDArray[np.float64]

METRICS = ("value", "correct", "bias", "bias_optimal")
_SOLVED_AT_ONCE = 20_000_000  # numbers in the matrices of one call


@dataclass(frozen=True, eq=False)
class TableWorld:
    """An MDP whose every state is followed while tables learn."""

    mdp: MDP
    """As it was found."""

    @cached_property
    def states(self) -> NDArray[np.int64]:
        """The states where something is decided, (P,)."""
        return np.flatnonzero(~self.mdp.terminals)

    @cached_property
    def followed(self) -> MDP:
        """The MDP with a decision in every state, so that learning records all values."""
        decisions = tuple(Decision(str(state), int(state), 0, 0.0) for state in self.states)
        return replace(self.mdp, decisions=decisions)

    def check_discount(self, discount: object) -> None:
        """Refuse a discount with which some policy would be worth nothing finite."""
        if isinstance(discount, bool) or not isinstance(discount, int | float) or not 0 <= discount <= 1:
            raise InputError(f"discount must lie between 0 and 1, not {discount!r}.")
        if discount == 1 and _has_cycle(self.mdp):
            raise InputError(
                f"In {self.mdp.name} some policies never end an episode: give a discount below 1."
            )

    def measures(self, values: Floats, discount: float) -> dict[str, Floats]:
        """Measure tables, `(..., P, A)` of Q̄ in `states`; each measure is `(...)`."""
        shape = values.shape[:-2]
        exists = self.mdp.playable[self.states, : values.shape[-1]]
        q = np.where(exists, values.reshape(-1, *values.shape[-2:]), -np.inf)
        optimal = np.where(exists, self.mdp.optimal_values(discount)[self.states, : q.shape[-1]], -np.inf)
        start = self.mdp.start[self.states]
        greedy = q == q.max(-1, keepdims=True)
        policy = greedy / greedy.sum(-1, keepdims=True)
        best = np.isclose(optimal, optimal.max(-1, keepdims=True), rtol=0, atol=1e-9)
        watched = self._watched(best)
        expected = _weighted(q.max(-1), start)
        earned = self._start_values(policy, start, discount)
        found = {
            "value": earned,
            "correct": (policy * best).sum(-1)[:, watched].mean(-1),
            "bias": expected - earned,
            "bias_optimal": expected - _weighted(optimal.max(-1), start),
        }
        return {name: measure.reshape(shape) for name, measure in found.items()}

    def _watched(self, best: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of `states` count for `correct`, (P,)."""
        if self.mdp.decisions:
            return np.isin(self.states, [decision.state for decision in self.mdp.decisions])
        moves = (self.mdp.transitions[self.states, : best.shape[1]] > 0) & best[:, :, None]
        steps = np.zeros((self.mdp.n_states, self.mdp.n_states), dtype=bool)
        steps[self.states] = moves.any(1)
        return reachable(self.mdp.start > 0, steps)[self.states]

    def _start_values(self, policies: Floats, start: Floats, discount: float) -> Floats:
        """Return Σ d(s) V^π(s) of each policy (N, P, A), by linear solves of distinct policies; (N,)."""
        width = policies.shape[-1]
        moves = self.mdp.transitions[np.ix_(self.states, np.arange(width), self.states)]
        rewards = self.mdp.expected_rewards[self.states, :width]
        distinct, where = np.unique(policies.reshape(len(policies), -1), axis=0, return_inverse=True)
        found = np.empty(len(distinct))
        for part in _parts(len(distinct), len(self.states) ** 2):
            weights = distinct[part].reshape(-1, len(self.states), width)
            chains = np.einsum("npa,paq->npq", weights, moves)
            earned = np.einsum("npa,pa->np", weights, rewards)
            systems = np.eye(len(self.states)) - discount * chains
            found[part] = _weighted(np.linalg.solve(systems, earned[..., None])[..., 0], start)
        return found[where.reshape(-1)]


def _weighted(values: Floats, weights: Floats) -> Floats:
    """Sum the last axis, weighted; row by row, so that a seed's bits don't depend on its neighbours'."""
    sums: Floats = (values * weights).sum(-1)
    return sums


@lru_cache(maxsize=32)
def table_world(environment: str) -> TableWorld:
    """Return the world with this id; refuse one whose transitions are not known as a table."""
    made = make_environment(environment)
    try:
        inner = made.unwrapped
        return TableWorld(inner.mdp if isinstance(inner, MDPEnv) else mdp_from_gymnasium(made))
    except InputTypeError as error:
        raise InputTypeError(f"{environment} is no world for a study of tables: {error}") from error
    finally:
        made.close()


def _has_cycle(mdp: MDP) -> bool:
    """Whether an episode may come back to a state where it was."""
    going = ~mdp.terminals
    left = (np.where(mdp.playable[:, :, None], mdp.transitions, 0).max(1) > 0)[np.ix_(going, going)]
    while len(left):
        stays = left.any(1)
        if stays.all():
            return True
        left = left[np.ix_(stays, stays)]
    return False


def _parts(n: int, size: int) -> Iterator[slice]:
    """Yield slices of n things of this size that together stay within memory."""
    step = max(1, _SOLVED_AT_ONCE // size)
    for first in range(0, n, step):
        yield slice(first, first + step)
