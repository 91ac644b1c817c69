"""The compiled learning loop: choose an action, step the MDP, update the tables."""

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled, inlined
from ebql.environments.exact.mdp import Model
from ebql.tabular.agents import Turn
from ebql.tabular.behaviours import Behaviour, greedy_action
from ebql.tabular.memory import Floats, Ints, Memory, Record, Settings
from ebql.tabular.rules import Rule, argmax, backup_weight, bootstrap, bootstrap_plainly
from ebql.tabular.splits import best_split


@inlined
def rate(scale: float, table: Floats, power: float, visits: int) -> float:
    """Return scale * visits ** -power, at most 1; `table` holds the first powers."""
    decay: float = table[visits] if visits < len(table) else visits**-power
    return min(1.0, scale * decay)


@inlined
def act(values: Floats, epsilon: float, rng: np.random.Generator) -> int:
    """Return an ε-greedy action for `values`, `(A,)`; ties are broken at random."""
    if rng.random() < epsilon:
        return int(rng.random() * len(values))
    return argmax(values, rng)


@inlined
def member_to_update(turn: int, time: int, ensemble_size: int, rng: np.random.Generator) -> int:
    """Return the member that learns from step number `time`."""
    if ensemble_size == 1:
        return 0
    if turn == Turn.ALTERNATE:
        return time % ensemble_size
    return int(rng.random() * ensemble_size)


@inlined
def update_entry(
    tables: Floats, action_values: Floats, state: int, action: int, member: int, step: float, target: float
) -> None:
    """Move an entry of a member towards its target by a `step` (α), and update the sum over members."""
    tables[state, action, member] += step * (target - tables[state, action, member])
    # Summed again instead of adjusted by the difference, so that exact ties between actions stay exact.
    total = 0.0
    for each in range(tables.shape[2]):
        total += tables[state, action, each]
    action_values[state, action] = total


@inlined
def sample(cumulative: Floats, rng: np.random.Generator) -> int:
    """Sample an index from a cumulative distribution; a certain outcome uses no random number."""
    index = 0
    if cumulative[0] < 1.0:
        uniform = rng.random()
        while uniform >= cumulative[index]:
            index += 1
    return index


@compiled
def record_decisions(memory: Memory, settings: Settings, record: Record, row: int, episode: int) -> None:
    """Write the values and exploration rates of the tracked states to `row` of the record."""
    scale = settings.epsilon_scales[min(episode + 1, len(settings.epsilon_scales) - 1)]
    divisor = 1 if settings.pessimistic else settings.acting
    for column in range(len(record.states)):
        state = record.states[column]
        for action in range(record.values.shape[2]):
            record.values[row, column, action] = memory.action_values[state, action] / divisor
        record.epsilons[row, column] = rate(
            scale, settings.epsilon_decay, settings.epsilon_power, memory.visits[state] + 1
        )


@compiled
def store_past(
    rule: int, period: int, entry: Floats, row: Floats, action: int, before: float, count: int
) -> None:
    """Update the tables that hold the past, for a rule that looks back, after update `count` of an entry.

    `row`, `(A, K)`, are the values of the state and `entry`, `(K,)`, those of the updated action. `before`
    is the previous value of the first table, the one that learns. Self-correcting Q-learning keeps each
    entry as it was before its last update. Speedy Q-learning keeps the whole row as it was before the last
    update of any of its entries. Averaged Q-learning keeps a snapshot of the entry at every `period`-th
    update, one per table. A table without a snapshot so far follows the entry, so that only learnt values
    are averaged.
    """
    if rule == Rule.SELF_CORRECTING:
        entry[1] = before
    elif rule == Rule.SPEEDY:
        row[:, 1] = row[:, 0]
        row[action, 1] = before
    else:
        taken = (count - 1) // period
        if taken * period == count - 1 > 0:
            for table in range(len(entry) - 1, 1, -1):
                entry[table] = entry[table - 1]
            entry[1] = before
        for table in range(1 + taken, len(entry)):
            entry[table] = entry[0]


@inlined
def begin(memory: Memory, settings: Settings, rng: np.random.Generator) -> None:
    """Begin an episode; with Thompson sampling, draw the member that acts in it."""
    if settings.behaviour == Behaviour.THOMPSON:
        memory.actor[0] = int(rng.random() * settings.learners)


# `legal`, `(S, A)`, lists the actions of each state, the legal ones first; None if these are 0, 1, … in every
# state. Rules and behaviours only ever see the values of legal actions.


@compiled
def of_legal(values: Floats, state: int, n_actions: int, legal: Ints | None) -> Floats:
    """Return the values of the `n_actions` legal actions of `state`, given those of all, `(A, …)`."""
    if legal is None:
        return values[:n_actions]
    return values[legal[state, :n_actions]]


@inlined
def choose_from(
    values: Floats,
    tables: Floats,
    behaviour: int,
    ucb_width: float,
    actor: int,
    epsilon: float,
    rng: np.random.Generator,
) -> int:
    """Return one of A legal actions, given their `values`, `(A,)`, and the members' `tables`, `(A, K)`."""
    if behaviour == Behaviour.MEAN:
        return act(values, epsilon, rng)
    if rng.random() < epsilon:
        return int(rng.random() * len(values))
    return greedy_action(tables.T, behaviour, ucb_width, actor, rng)


@compiled
def choose(
    memory: Memory,
    settings: Settings,
    state: int,
    n_actions: int,
    legal: Ints | None,
    episode: int,
    rng: np.random.Generator,
) -> int:
    """Count a visit of `state` and choose one of its `n_actions` legal actions."""
    memory.visits[state] += 1
    scale = settings.epsilon_scales[episode]
    epsilon = rate(scale, settings.epsilon_decay, settings.epsilon_power, memory.visits[state])
    values = of_legal(memory.action_values[state], state, n_actions, legal)
    tables = of_legal(memory.tables[state], state, n_actions, legal)
    chosen = choose_from(
        values, tables, settings.behaviour, settings.ucb_width, memory.actor[0], epsilon, rng
    )
    return chosen if legal is None else int(legal[state, chosen])


@compiled
def learn_from(
    memory: Memory,
    settings: Settings,
    state: int,
    action: int,
    reward: float,
    next_state: int,
    next_actions: int,
    legal: Ints | None,
    episode: int,
    rng: np.random.Generator,
) -> None:
    """Learn from a transition; `next_actions` is 0 if the episode has terminated."""
    update_members(
        memory.tables[state],
        memory.action_values[state],
        memory.updates[state],
        memory.splits,
        memory.clock[0],
        memory.tables[next_state],
        next_state,
        next_actions,
        legal,
        action,
        reward,
        settings.rule,
        settings.turn,
        settings.discount,
        settings.step_scales[episode],
        settings.step_power,
        settings.step_decay,
        settings.parameter,
        settings.mask_probability,
        settings.learners,
        settings.acting,
        settings.pessimistic,
        rng,
    )
    memory.clock[0] += 1


@inlined
def update_members(
    row: Floats,
    action_values: Floats,
    updates: Ints,
    splits: Ints,
    time: int,
    next_row: Floats,
    next_state: int,
    next_actions: int,
    legal: Ints | None,
    action: int,
    reward: float,
    rule: int,
    turn: int,
    discount: float,
    step_scale: float,
    step_power: float,
    step_decay: Floats,
    parameter: float,
    mask_probability: float,
    learners: int,
    acting: int,
    pessimistic: bool,
    rng: np.random.Generator,
) -> None:
    """Update the members whose turn it is from step number `time`, with any rule.

    `row`, `(A, K)`, `action_values`, `(A,)`, and `updates`, `(A, K)`, are those of the state, `next_row` is
    that of the next one. `next_actions` is the number of its legal actions, 0 if the episode has terminated.
    `Memory` and `Settings` describe the other arguments.
    """
    masked = turn == Turn.MASKED
    if masked:
        first, end = 0, learners
    else:
        first = member_to_update(turn, time, learners, rng)
        end = first + 1
    entry = row[action]
    for member in range(first, end):
        if not masked or rng.random() < mask_probability:
            updates[action, member] += 1
            count = updates[action, member]
            step = rate(step_scale, step_decay, step_power, count)
            target = reward
            if next_actions > 0:
                q_next = of_legal(next_row, next_state, next_actions, legal).T
                used = parameter
                if rule == Rule.ADAPTIVE_SPLIT:
                    n_index = best_split(q_next)
                    used = float(n_index)
                    splits[0] += n_index
                    splits[1] += 1
                elif rule == Rule.ROBUST_MEAN or rule == Rule.SMOOTHED:
                    used = parameter / count  # vanishes, so that the values converge to the optimal ones
                target += discount * bootstrap(rule, used, step, q_next, member, rng)
                if rule == Rule.SUNRISE:
                    step *= backup_weight(q_next, member, used, rng)
            before = entry[member]
            entry[member] += step * (target - before)
            if learners < len(entry):
                store_past(rule, int(parameter), entry, row, action, before, count)
    if pessimistic:
        action_values[action] = entry[:acting].min()
    else:
        total = 0.0
        for each in range(acting):
            total += entry[each]
        action_values[action] = total


# `run` works on local arrays, because access through a tuple counts references, which took two thirds of the
# time. `choose` and `learn_from` do the same for environments that are stepped from Python.


@compiled
def run(
    model: Model,
    memory: Memory,
    settings: Settings,
    record: Record,
    max_steps: int,
    stop: NDArray[np.bool_],
    rng: np.random.Generator,
    general: bool | None,
    legal: Ints | None,
) -> None:
    """Learn for as many episodes as `record` has rows, or until another thread sets `stop`, `(1,)`.

    `general` is None for the paper's agents (`Settings.plain`) if `legal` is None too, otherwise True. numba
    compiles each case separately, when it is first needed, and leaves out the branches of the others.
    """
    successors, cumulative, reward_means, reward_stds = model[:4]
    start_states, start_cumulative, terminals, action_counts = model[4:]
    tables, action_values, updates, visits, clock, actor, splits = memory
    rule, turn, discount = settings[:3]
    epsilon_scales, epsilon_power, epsilon_decay, step_scales, step_power, step_decay = settings[3:9]
    parameter, mask_probability, learners, acting, pessimistic, behaviour, ucb_width = settings[10:]
    returns, lengths, recorded_at = record[:3]
    ensemble_size = tables.shape[2]
    time = clock[0]
    row = 0
    for episode in range(len(returns)):
        epsilon_scale, step_scale = epsilon_scales[episode], step_scales[episode]
        if general is not None:
            begin(memory, settings, rng)
        state = start_states[sample(start_cumulative, rng)]
        episode_return, weight, length = 0.0, 1.0, 0
        going = True
        while going and length < max_steps and not stop[0]:
            if general is None:
                visits[state] += 1
                epsilon = rate(epsilon_scale, epsilon_decay, epsilon_power, visits[state])
                action = act(action_values[state, : action_counts[state]], epsilon, rng)
            else:
                visits[state] += 1
                epsilon = rate(epsilon_scale, epsilon_decay, epsilon_power, visits[state])
                n_actions = action_counts[state]
                values = of_legal(action_values[state], state, n_actions, legal)
                members = of_legal(tables[state], state, n_actions, legal)
                action = choose_from(values, members, behaviour, ucb_width, actor[0], epsilon, rng)
                if legal is not None:
                    action = legal[state, action]

            branch = sample(cumulative[state, action], rng)
            next_state = successors[state, action, branch]
            reward = reward_means[state, action, branch]
            std = reward_stds[state, action, branch]
            if std > 0.0:
                reward += std * rng.standard_normal()
            going = not terminals[next_state]

            if general is None:
                member = member_to_update(turn, time, ensemble_size, rng)
                target = reward
                if going:
                    q_next = tables[next_state, : action_counts[next_state]].T
                    target += discount * bootstrap_plainly(rule, q_next, member, rng)
                updates[state, action, member] += 1
                step = rate(step_scale, step_decay, step_power, updates[state, action, member])
                update_entry(tables, action_values, state, action, member, step, target)
            else:
                next_actions = action_counts[next_state] if going else 0
                update_members(
                    tables[state],
                    action_values[state],
                    updates[state],
                    splits,
                    time,
                    tables[next_state],
                    next_state,
                    next_actions,
                    legal,
                    action,
                    reward,
                    rule,
                    turn,
                    discount,
                    step_scale,
                    step_power,
                    step_decay,
                    parameter,
                    mask_probability,
                    learners,
                    acting,
                    pessimistic,
                    rng,
                )

            episode_return += weight * reward
            weight *= discount
            length += 1
            time += 1
            state = next_state
        returns[episode] = episode_return
        lengths[episode] = length
        if row < len(recorded_at) and recorded_at[row] == episode + 1:
            record_decisions(memory, settings, record, row, episode)
            row += 1
    clock[0] = time
