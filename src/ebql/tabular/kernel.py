"""The compiled step: choose an action, learn from what it brought; and whole runs of such steps.

Tables are laid out `(S, A, K)`: an update sums one entry over the members, so these lie side by side.
`totals`, `(S, A)`, always holds that sum, so that acting costs the same for every ensemble size.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled, inlined
from ebql.environments.mdp import Model
from ebql.tabular.agents import Turn
from ebql.tabular.rules import argmax, bootstrap

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Memory(NamedTuple):
    """All that one agent remembers; the compiled functions change it in place."""

    tables: Floats  # (S, A, K)
    totals: Floats  # (S, A), sum of the tables over members
    updates: Ints  # (S, A, K), how often each entry was updated
    visits: Ints  # (S,), how often an action was chosen in each state
    clock: Ints  # (1,), steps learnt from


class Settings(NamedTuple):
    """How one agent learns; rates as `Schedule` defines them."""

    rule: int
    turn: int
    discount: float
    epsilon_scales: Floats  # (episodes,)
    epsilon_power: float
    epsilon_decay: Floats  # see `decay_table`
    step_scales: Floats  # (episodes,)
    step_power: float
    step_decay: Floats


class Record(NamedTuple):
    """What a run writes down: every episode's outcome, and the followed states every so often."""

    returns: Floats  # (episodes,), discounted
    lengths: Ints  # (episodes,)
    at: Ints  # (R,), number of episodes done when the followed states are looked at, ascending
    states: Ints  # (D,), the followed states
    values: Floats  # (R, D, A), mean of the members
    epsilons: Floats  # (R, D), exploration rate that the next visit would have


def empty_memory(n_states: int, n_actions: int, ensemble_size: int) -> Memory:
    """Tables of zeros, as in the paper's experiments."""
    shape = (n_states, n_actions, ensemble_size)
    return Memory(
        tables=np.zeros(shape),
        totals=np.zeros((n_states, n_actions)),
        updates=np.zeros(shape, dtype=np.int64),
        visits=np.zeros(n_states, dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
    )


@cache
def decay_table(power: float, length: int = 4096) -> Floats:
    """All visits ** -power for visits below `length`: most of the powers that a run needs, computed once."""
    return np.array([0.0, *(visits**-power for visits in range(1, length))])


@inlined
def rate(scale: float, table: Floats, power: float, visits: int) -> float:
    """Return scale * visits ** -power, at most 1, by `table` as far as it reaches."""
    decay: float = table[visits] if visits < len(table) else visits**-power
    return min(1.0, scale * decay)


@inlined
def act(values: Floats, epsilon: float, rng: np.random.Generator) -> int:
    """Choose an action by its `values`, `(A,)`: ε-greedy, ties broken at random."""
    if rng.random() < epsilon:
        return int(rng.random() * len(values))
    return argmax(values, rng)


@inlined
def whose_turn(turn: int, time: int, ensemble_size: int, rng: np.random.Generator) -> int:
    """The member that learns from step number `time`."""
    if ensemble_size == 1:
        return 0
    if turn == Turn.ALTERNATE:
        return time % ensemble_size
    return int(rng.random() * ensemble_size)


@inlined
def correct(
    tables: Floats, totals: Floats, state: int, action: int, member: int, step: float, target: float
) -> None:
    """Move one entry of one member a `step` (α) towards its target, and bring the total up to date."""
    tables[state, action, member] += step * (target - tables[state, action, member])
    # Summed anew rather than adjusted by the difference: exact ties between actions stay exact.
    total = 0.0
    for each in range(tables.shape[2]):
        total += tables[state, action, each]
    totals[state, action] = total


@inlined
def draw(cumulative: Floats, rng: np.random.Generator) -> int:
    """Draw an index by its cumulative distribution; a sure thing costs no random number."""
    index = 0
    if cumulative[0] < 1.0:
        uniform = rng.random()
        while uniform >= cumulative[index]:
            index += 1
    return index


@compiled
def look(memory: Memory, settings: Settings, record: Record, row: int, episode: int) -> None:
    """Write the followed states' values and exploration rates into `row` of the record."""
    ensemble_size = memory.tables.shape[2]
    scale = settings.epsilon_scales[min(episode + 1, len(settings.epsilon_scales) - 1)]
    for column in range(len(record.states)):
        state = record.states[column]
        for action in range(record.values.shape[2]):
            record.values[row, column, action] = memory.totals[state, action] / ensemble_size
        record.epsilons[row, column] = rate(
            scale, settings.epsilon_decay, settings.epsilon_power, memory.visits[state] + 1
        )


# `run` and the pair `choose` and `learn_from` put the same pieces together: `run` around a model, in one
# loop over plain local arrays (reaching into a tuple counts references, which took two thirds of the
# time); the pair step by step, for a world that lives in Python.


@compiled
def run(
    model: Model,
    memory: Memory,
    settings: Settings,
    record: Record,
    max_steps: int,
    stop: NDArray[np.bool_],
    rng: np.random.Generator,
) -> None:
    """Learn for as many episodes as `record` has room for, or until another thread sets `stop`, `(1,)`."""
    successors, cumulative, reward_means, reward_stds = model[:4]
    start_states, start_cumulative, terminals, action_counts = model[4:]
    tables, totals, updates, visits, clock = memory
    rule, turn, discount = settings[:3]
    epsilon_scales, epsilon_power, epsilon_decay, step_scales, step_power, step_decay = settings[3:]
    returns, lengths, recorded_at = record[:3]
    ensemble_size = tables.shape[2]
    time = clock[0]
    row = 0
    for episode in range(len(returns)):
        epsilon_scale, step_scale = epsilon_scales[episode], step_scales[episode]
        state = start_states[draw(start_cumulative, rng)]
        episode_return, weight, length = 0.0, 1.0, 0
        going = True
        while going and length < max_steps and not stop[0]:
            visits[state] += 1
            epsilon = rate(epsilon_scale, epsilon_decay, epsilon_power, visits[state])
            action = act(totals[state, : action_counts[state]], epsilon, rng)

            branch = draw(cumulative[state, action], rng)
            next_state = successors[state, action, branch]
            reward = reward_means[state, action, branch]
            std = reward_stds[state, action, branch]
            if std > 0.0:
                reward += std * rng.standard_normal()
            going = not terminals[next_state]

            member = whose_turn(turn, time, ensemble_size, rng)
            target = reward
            if going:
                q_next = tables[next_state, : action_counts[next_state]].T
                target += discount * bootstrap(rule, q_next, member, rng)
            updates[state, action, member] += 1
            step = rate(step_scale, step_decay, step_power, updates[state, action, member])
            correct(tables, totals, state, action, member, step, target)

            episode_return += weight * reward
            weight *= discount
            length += 1
            time += 1
            state = next_state
        returns[episode] = episode_return
        lengths[episode] = length
        if row < len(recorded_at) and recorded_at[row] == episode + 1:
            look(memory, settings, record, row, episode)
            row += 1
    clock[0] = time


@compiled
def choose(
    memory: Memory, settings: Settings, state: int, n_actions: int, episode: int, rng: np.random.Generator
) -> int:
    """Count a visit of `state` and choose one of its `n_actions`."""
    memory.visits[state] += 1
    scale = settings.epsilon_scales[episode]
    epsilon = rate(scale, settings.epsilon_decay, settings.epsilon_power, memory.visits[state])
    return act(memory.totals[state, :n_actions], epsilon, rng)


@compiled
def learn_from(
    memory: Memory,
    settings: Settings,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    next_actions: int,
    episode: int,
    rng: np.random.Generator,
) -> None:
    """Let one member learn from a transition; `next_actions` is 0 where the episode has terminated."""
    member = whose_turn(settings.turn, memory.clock[0], memory.tables.shape[2], rng)
    target = reward
    if next_actions > 0:
        q_next = memory.tables[next_state, :next_actions].T
        target += settings.discount * bootstrap(settings.rule, q_next, member, rng)
    memory.updates[state, action, member] += 1
    count = memory.updates[state, action, member]
    step = rate(settings.step_scales[episode], settings.step_decay, settings.step_power, count)
    correct(memory.tables, memory.totals, state, action, member, step, target)
    memory.clock[0] += 1
