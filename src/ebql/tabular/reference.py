"""The algorithm in plain Python, to be read, to check the compiled kernel against, and to measure it by.

It draws the same random numbers in the same order, so its tables must equal the kernel's to the bit.
"""

import numpy as np

from ebql.environments import MDP
from ebql.tabular.agents import Agent, Turn
from ebql.tabular.rules import Rule
from ebql.tabular.schedules import Schedule


def learn_plainly(
    world: MDP,
    agent: Agent,
    *,
    episodes: int,
    seed: int,
    epsilon: Schedule,
    learning_rate: Schedule,
    discount: float = 1.0,
) -> list[list[list[float]]]:
    """Learn as `ebql.tabular.learn` does for one seed; return the tables as lists, `[K][S][A]`."""
    rng = np.random.default_rng(seed)
    members = range(agent.ensemble_size)
    counts = world.action_counts.tolist()
    tables = [[[0.0] * n for n in counts] for _ in members]
    updates = [[[0] * n for n in counts] for _ in members]
    visits = [0] * world.n_states
    terminal = world.terminals.tolist()
    successors, cumulative, means, stds = (array.tolist() for array in world.model[:4])
    starts, start_cumulative = world.model.start_states.tolist(), world.model.start_cumulative.tolist()
    epsilons, steps = epsilon.scales(episodes).tolist(), learning_rate.scales(episodes).tolist()
    time = 0

    def argmax(values: list[float]) -> int:
        best, ties = 0, 1
        for action in range(1, len(values)):
            if values[action] > values[best]:
                best, ties = action, 1
            elif values[action] == values[best]:
                ties += 1
                if rng.random() * ties < 1.0:
                    best = action
        return best

    def draw(distribution: list[float]) -> int:
        index = 0
        if distribution[0] < 1.0:
            uniform = rng.random()
            while uniform >= distribution[index]:
                index += 1
        return index

    for episode in range(episodes):
        state = starts[draw(start_cumulative)]
        while not terminal[state]:
            visits[state] += 1
            if rng.random() < min(1.0, epsilons[episode] * visits[state] ** -epsilon.power):
                action = int(rng.random() * counts[state])
            else:
                action = argmax([sum(tables[k][state][a] for k in members) for a in range(counts[state])])

            branch = draw(cumulative[state][action])
            next_state = successors[state][action][branch]
            reward = means[state][action][branch]
            if stds[state][action][branch] > 0:
                reward += stds[state][action][branch] * rng.standard_normal()

            member = 0
            if len(members) > 1:
                alternate = agent.turn == Turn.ALTERNATE
                member = time % len(members) if alternate else int(rng.random() * len(members))
            time += 1
            target = reward
            if not terminal[next_state]:
                if agent.rule == Rule.MAXIMUM:
                    value = max(tables[member][next_state])
                else:
                    selected = argmax(tables[member][next_state])
                    judges = [tables[k][next_state][selected] for k in members if k != member]
                    value = sum(judges) / len(judges)
                target += discount * value
            updates[member][state][action] += 1
            step = min(1.0, steps[episode] * updates[member][state][action] ** -learning_rate.power)
            tables[member][state][action] += step * (target - tables[member][state][action])
            state = next_state
    return tables
