"""The compiled step: choose an action, learn from what it brought; and whole runs of such steps."""

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled, inlined
from ebql.environments.exact.mdp import Model
from ebql.tabular.agents import Turn
from ebql.tabular.behaviours import Behaviour, greedy_otherwise
from ebql.tabular.memory import Floats, Memory, Record, Settings
from ebql.tabular.rules import Rule, argmax, backup_weight, bootstrap, bootstrap_plainly
from ebql.tabular.splits import best_split


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
    tables: Floats, acted_on: Floats, state: int, action: int, member: int, step: float, target: float
) -> None:
    """Move one entry of one member a `step` (α) towards its target, and bring the total up to date."""
    tables[state, action, member] += step * (target - tables[state, action, member])
    # Summed anew rather than adjusted by the difference: exact ties between actions stay exact.
    total = 0.0
    for each in range(tables.shape[2]):
        total += tables[state, action, each]
    acted_on[state, action] = total


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
    scale = settings.epsilon_scales[min(episode + 1, len(settings.epsilon_scales) - 1)]
    divisor = 1 if settings.pessimistic else settings.acting
    for column in range(len(record.states)):
        state = record.states[column]
        for action in range(record.values.shape[2]):
            record.values[row, column, action] = memory.acted_on[state, action] / divisor
        record.epsilons[row, column] = rate(
            scale, settings.epsilon_decay, settings.epsilon_power, memory.visits[state] + 1
        )


@compiled
def remember(
    rule: int, period: int, entry: Floats, row: Floats, action: int, before: float, count: int
) -> None:
    """Bring the past of a rule that looks back up to date, after the `count`-th correction of an entry.

    `row`, `(A, K)`, are the state's values and `entry`, `(K,)`, the corrected action's, `before` what its
    first, the one that learns, was until then. Self-correcting Q-learning keeps each entry as it was before
    its last update; speedy Q-learning the whole row as it was before the last update of any of its entries;
    averaged Q-learning the entry at every `period`-th of its updates, as often as there are tables. A table
    that no snapshot has reached yet follows the entry, so that nothing is averaged that was never learnt.
    """
    if rule == Rule.SELF_CORRECTING:
        entry[1] = before
    elif rule == Rule.SPEEDY:
        row[:, 1] = row[:, 0]
        row[action, 1] = before
    else:
        taken = (count - 1) // period
        if taken * period == count - 1 > 0:
            for place in range(len(entry) - 1, 1, -1):
                entry[place] = entry[place - 1]
            entry[1] = before
        for place in range(1 + taken, len(entry)):
            entry[place] = entry[0]


@compiled
def begin(memory: Memory, settings: Settings, rng: np.random.Generator) -> None:
    """Begin an episode: draw the member that acts in it, where one does."""
    if settings.behaviour == Behaviour.THOMPSON:
        memory.actor[0] = int(rng.random() * settings.learners)


@compiled
def choose(
    memory: Memory, settings: Settings, state: int, n_actions: int, episode: int, rng: np.random.Generator
) -> int:
    """Count a visit of `state` and choose one of its `n_actions`."""
    memory.visits[state] += 1
    scale = settings.epsilon_scales[episode]
    epsilon = rate(scale, settings.epsilon_decay, settings.epsilon_power, memory.visits[state])
    if settings.behaviour == Behaviour.MEAN:
        return act(memory.acted_on[state, :n_actions], epsilon, rng)
    if rng.random() < epsilon:
        return int(rng.random() * n_actions)
    q = memory.tables[state, :n_actions].T
    return greedy_otherwise(q, settings.behaviour, settings.ucb_width, memory.actor[0], rng)


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
    """Let the agent learn from a transition; `next_actions` is 0 where the episode has terminated."""
    masked = settings.turn == Turn.MASKED
    if masked:
        first, end = 0, settings.learners
    else:
        first = whose_turn(settings.turn, memory.clock[0], settings.learners, rng)
        end = first + 1
    for member in range(first, end):
        if not masked or rng.random() < settings.mask_probability:
            teach(memory, settings, member, state, action, reward, next_state, next_actions, episode, rng)
    memory.clock[0] += 1


@compiled
def teach(
    memory: Memory,
    settings: Settings,
    member: int,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    next_actions: int,
    episode: int,
    rng: np.random.Generator,
) -> None:
    """Let one member learn from a transition, by any rule."""
    memory.updates[state, action, member] += 1
    count = memory.updates[state, action, member]
    step = rate(settings.step_scales[episode], settings.step_decay, settings.step_power, count)
    target = reward
    if next_actions > 0:
        q_next = memory.tables[next_state, :next_actions].T
        parameter = settings.parameter
        if settings.rule == Rule.ADAPTIVE_SPLIT:
            n_index = best_split(q_next)
            parameter = float(n_index)
            memory.splits[0] += n_index
            memory.splits[1] += 1
        target += settings.discount * bootstrap(settings.rule, parameter, step, q_next, member, rng)
        if settings.rule == Rule.SUNRISE:
            step *= backup_weight(q_next, member, parameter, rng)
    row = memory.tables[state]
    entry = row[action]
    before = entry[member]
    entry[member] += step * (target - before)
    if settings.learners < len(entry):
        remember(settings.rule, int(settings.parameter), entry, row, action, before, count)
    if settings.pessimistic:
        memory.acted_on[state, action] = entry[: settings.acting].min()
        return
    total = 0.0
    for each in range(settings.acting):
        total += entry[each]
    memory.acted_on[state, action] = total


# `run` takes the paper's own agents through one loop over plain local arrays: reaching into a tuple counts
# references, which took two thirds of the time. What any other agent does differently stays behind
# `choose` and `learn_from`, which also serve worlds that live in Python.


@compiled
def run(
    model: Model,
    memory: Memory,
    settings: Settings,
    record: Record,
    max_steps: int,
    stop: NDArray[np.bool_],
    rng: np.random.Generator,
    otherwise: bool | None,
) -> None:
    """Learn for as many episodes as `record` has room for, or until another thread sets `stop`, `(1,)`.

    `otherwise` is None for the paper's own agents (`Settings.plain`), and True for any other. numba leaves
    out the branches that None, or its absence, rules out: each kind has a loop of its own, compiled when it
    is first needed.
    """
    successors, cumulative, reward_means, reward_stds = model[:4]
    start_states, start_cumulative, terminals, action_counts = model[4:]
    tables, acted_on, updates, visits, clock = memory[:5]
    rule, turn, discount = settings[:3]
    epsilon_scales, epsilon_power, epsilon_decay, step_scales, step_power, step_decay = settings[3:9]
    returns, lengths, recorded_at = record[:3]
    ensemble_size = tables.shape[2]
    time = clock[0]
    row = 0
    for episode in range(len(returns)):
        epsilon_scale, step_scale = epsilon_scales[episode], step_scales[episode]
        if otherwise is not None:
            begin(memory, settings, rng)
        state = start_states[draw(start_cumulative, rng)]
        episode_return, weight, length = 0.0, 1.0, 0
        going = True
        while going and length < max_steps and not stop[0]:
            if otherwise is None:
                visits[state] += 1
                epsilon = rate(epsilon_scale, epsilon_decay, epsilon_power, visits[state])
                action = act(acted_on[state, : action_counts[state]], epsilon, rng)
            else:
                action = choose(memory, settings, state, action_counts[state], episode, rng)

            branch = draw(cumulative[state, action], rng)
            next_state = successors[state, action, branch]
            reward = reward_means[state, action, branch]
            std = reward_stds[state, action, branch]
            if std > 0.0:
                reward += std * rng.standard_normal()
            going = not terminals[next_state]

            if otherwise is None:
                member = whose_turn(turn, time, ensemble_size, rng)
                target = reward
                if going:
                    q_next = tables[next_state, : action_counts[next_state]].T
                    target += discount * bootstrap_plainly(rule, q_next, member, rng)
                updates[state, action, member] += 1
                step = rate(step_scale, step_decay, step_power, updates[state, action, member])
                correct(tables, acted_on, state, action, member, step, target)
            else:
                next_actions = action_counts[next_state] if going else 0
                learn_from(memory, settings, state, action, reward, next_state, next_actions, episode, rng)

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
