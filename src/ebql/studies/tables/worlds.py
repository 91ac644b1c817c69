"""Environments whose values are known exactly, and the measures of tabular agents that learn in them.

Each measure is taken at every record. Q̄ is the mean of the agent's members (for Maxmin, their minimum), π its
greedy policy (ties are broken at random), and d the distribution of the first state.

value
    Σ d(s) V^π(s): the exact discounted value of the greedy policy.
correct
    The probability that π's action is optimal, averaged over the environment's decisions. If it names none,
    over the states that an optimal policy may visit.
bias
    Σ d(s) [max_a Q̄(s, a) − V^π(s)]: the agent's estimate minus the value of its own policy.
bias_optimal
    Σ d(s) [max_a Q̄(s, a) − V*(s)]: the agent's estimate minus the optimal value.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP, Decision, MDPEnv, make_environment, mdp_from_gymnasium
from ebql.environments.exact.discrete import require_unchanged
from ebql.environments.exact.mdp import reachable
from ebql.errors import InputError, InputTypeError

Floats = NDArray[np.float64]

METRICS = ("value", "correct", "bias", "bias_optimal")
_NUMBERS_PER_SOLVE = 20_000_000  # in the matrices of one call


@dataclass(frozen=True, eq=False)
class TableWorld:
    """An MDP in which the values of all states are recorded while tables learn."""

    mdp: MDP
    """The MDP with its own decisions."""

    @cached_property
    def states(self) -> NDArray[np.int64]:
        """The states that are not terminal, (P,)."""
        return np.flatnonzero(~self.mdp.terminals)

    @cached_property
    def followed(self) -> MDP:
        """The MDP with a decision in every state, so that `learn` records all values."""
        legal = self.mdp.exists.argmax(1)  # a decision names an action; which one does not matter here
        decisions = tuple(Decision(str(state), int(state), int(legal[state]), 0.0) for state in self.states)
        return replace(self.mdp, decisions=decisions)

    def check_discount(self, discount: object) -> None:
        """Refuse a discount with which the value of some policy would not be finite."""
        if isinstance(discount, bool) or not isinstance(discount, int | float) or not 0 <= discount <= 1:
            raise InputError(f"discount must lie between 0 and 1, not {discount!r}.")
        if discount == 1 and _has_cycle(self.mdp):
            raise InputError(
                f"In {self.mdp.name} some policies never end an episode: give a discount below 1."
            )

    def measures(self, values: Floats, discount: float) -> dict[str, Floats]:
        """Return every measure, each `(...)`, of tables Q̄ of shape `(..., P, A)` over `states`."""
        shape = values.shape[:-2]
        exists = self.mdp.playable[self.states, : values.shape[-1]]
        q = np.where(exists, values.reshape(-1, *values.shape[-2:]), -np.inf)
        optimal = np.where(exists, self.mdp.optimal_values(discount)[self.states, : q.shape[-1]], -np.inf)
        start = self.mdp.start[self.states]
        greedy = q == q.max(-1, keepdims=True)
        policy = greedy / greedy.sum(-1, keepdims=True)
        best = np.isclose(optimal, optimal.max(-1, keepdims=True), rtol=0, atol=1e-9)
        counted = self._counted(best)
        expected = _weighted(q.max(-1), start)
        earned = self._start_values(policy, start, discount)
        measures = {
            "value": earned,
            "correct": (policy * best).sum(-1)[:, counted].mean(-1),
            "bias": expected - earned,
            "bias_optimal": expected - _weighted(optimal.max(-1), start),
        }
        return {name: measure.reshape(shape) for name, measure in measures.items()}

    def _counted(self, best: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of `states` count for `correct`, (P,)."""
        if self.mdp.decisions:
            return np.isin(self.states, [decision.state for decision in self.mdp.decisions])
        moves = (self.mdp.transitions[self.states, : best.shape[1]] > 0) & best[:, :, None]
        steps = np.zeros((self.mdp.n_states, self.mdp.n_states), dtype=bool)
        steps[self.states] = moves.any(1)
        return reachable(self.mdp.start > 0, steps)[self.states]

    def _start_values(self, policies: Floats, start: Floats, discount: float) -> Floats:
        """Return Σ d(s) V^π(s), (N,), of policies (N, P, A); equal policies are solved once."""
        width = policies.shape[-1]
        moves = self.mdp.transitions[np.ix_(self.states, np.arange(width), self.states)]
        rewards = self.mdp.expected_rewards[self.states, :width]
        distinct, where = np.unique(policies.reshape(len(policies), -1), axis=0, return_inverse=True)
        values = np.empty(len(distinct))
        for part in _parts(len(distinct), len(self.states) ** 2):
            weights = distinct[part].reshape(-1, len(self.states), width)
            chains = np.einsum("npa,paq->npq", weights, moves)
            earned = np.einsum("npa,pa->np", weights, rewards)
            systems = np.eye(len(self.states)) - discount * chains
            values[part] = _weighted(np.linalg.solve(systems, earned[..., None])[..., 0], start)
        return values[where.reshape(-1)]


def _weighted(values: Floats, weights: Floats) -> Floats:
    """Return weighted sums over the last axis, row by row: a seed's bits must not depend on other seeds."""
    sums: Floats = (values * weights).sum(-1)
    return sums


@lru_cache(maxsize=32)
def table_world(environment: str) -> TableWorld:
    """Return the environment with this id; refuse one whose transition table is unknown."""
    made = make_environment(environment)
    try:
        require_unchanged(made)
        inner = made.unwrapped
        return TableWorld(inner.mdp if isinstance(inner, MDPEnv) else mdp_from_gymnasium(made))
    except InputTypeError as error:
        raise InputTypeError(f"{environment} cannot be used in a study of tabular agents: {error}") from error
    finally:
        made.close()


def _has_cycle(mdp: MDP) -> bool:
    """Whether an episode can return to an earlier state."""
    going = ~mdp.terminals
    steps = (np.where(mdp.playable[:, :, None], mdp.transitions, 0).max(1) > 0)[np.ix_(going, going)]
    while len(steps):  # drop states without a successor until none is left, or all have one
        has_successor = steps.any(1)
        if has_successor.all():
            return True
        steps = steps[np.ix_(has_successor, has_successor)]
    return False


def _parts(n: int, size: int) -> Iterator[slice]:
    """Yield slices of n items of `size` numbers each that fit into memory together."""
    step = max(1, _NUMBERS_PER_SOLVE // size)
    for first in range(0, n, step):
        yield slice(first, first + step)
