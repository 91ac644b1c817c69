"""The compiled step: choose an action, learn from what it brought; and whole runs of such steps.

Tables are laid out `(S, A, K)`: an update sums one entry over the members, so these lie side by side.
`totals`, `(S, A)`, always holds that sum, so that acting costs the same for every ensemble size.
"""

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
    """How one agent learns; rates per episode as `Schedule` defines them."""

    rule: int
    turn: int
    discount: float
    epsilon_scales: Floats  # (episodes,)
    epsilon_power: float
    step_scales: Floats  # (episodes,)
    step_power: float


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


@inlined
def rate(scale: float, power: float, visits: int) -> float:
    """A schedule's value at the given number of visits, this one included."""
    return float(scale if power == 0.0 else scale * visits**-power)


@inlined
def act(
    memory: Memory, settings: Settings, state: int, n_actions: int, episode: int, rng: np.random.Generator
) -> int:
    """Choose an action: ε-greedy on the mean of the members, ties broken at random."""
    memory.visits[state] += 1
    epsilon = rate(settings.epsilon_scales[episode], settings.epsilon_power, memory.visits[state])
    if rng.random() < epsilon:
        return int(rng.random() * n_actions)
    return argmax(memory.totals[state, :n_actions], rng)


@inlined
def update(
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
    ensemble_size = memory.tables.shape[2]
    member = 0
    if ensemble_size > 1:
        alternate = settings.turn == Turn.ALTERNATE
        member = memory.clock[0] % ensemble_size if alternate else int(rng.random() * ensemble_size)
    memory.clock[0] += 1

    target = reward
    if next_actions > 0:
        q_next = memory.tables[next_state, :next_actions].T
        target += settings.discount * bootstrap(settings.rule, q_next, member, rng)

    memory.updates[state, action, member] += 1
    step = rate(settings.step_scales[episode], settings.step_power, memory.updates[state, action, member])
    entry = memory.tables[state, action]
    entry[member] += step * (target - entry[member])
    # Summed anew rather than adjusted by the difference: exact ties between actions stay exact.
    memory.totals[state, action] = entry.sum()


@inlined
def draw(cumulative: Floats, rng: np.random.Generator) -> int:
    """Draw an index by its cumulative distribution; a sure thing costs no random number."""
    index = 0
    if cumulative[0] < 1.0:
        uniform = rng.random()
        while uniform >= cumulative[index]:
            index += 1
    return index


@inlined
def look(memory: Memory, settings: Settings, record: Record, row: int, episode: int) -> None:
    """Write the followed states' values and exploration rates into `row` of the record."""
    ensemble_size = memory.tables.shape[2]
    for column in range(len(record.states)):
        state = record.states[column]
        for action in range(record.values.shape[2]):
            record.values[row, column, action] = memory.totals[state, action] / ensemble_size
        record.epsilons[row, column] = rate(
            settings.epsilon_scales[episode], settings.epsilon_power, memory.visits[state] + 1
        )


@compiled
def run(
    model: Model,
    memory: Memory,
    settings: Settings,
    record: Record,
    max_steps: int,
    rng: np.random.Generator,
) -> None:
    """Learn for as many episodes as `record` has room for."""
    row = 0
    for episode in range(len(record.returns)):
        state = model.start_states[draw(model.start_cumulative, rng)]
        weight = 1.0
        for step in range(max_steps):
            action = act(memory, settings, state, model.action_counts[state], episode, rng)
            branch = draw(model.cumulative[state, action], rng)
            next_state = model.successors[state, action, branch]
            reward = model.reward_means[state, action, branch]
            std = model.reward_stds[state, action, branch]
            if std > 0.0:
                reward += std * rng.standard_normal()
            next_actions = 0 if model.terminals[next_state] else model.action_counts[next_state]
            update(memory, settings, state, action, reward, next_state, next_actions, episode, rng)
            record.returns[episode] += weight * reward
            record.lengths[episode] = step + 1
            weight *= settings.discount
            state = next_state
            if next_actions == 0:
                break
        if row < len(record.at) and record.at[row] == episode + 1:
            look(memory, settings, record, row, episode)
            row += 1
