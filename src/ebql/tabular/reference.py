"""The algorithms in plain Python: a readable reference for tests and benchmarks of the compiled kernel.

They draw the same random numbers in the same order, so their tables equal the kernel's bit for bit.
"""

import math
from collections.abc import Callable

import numpy as np

from ebql.environments import MDP
from ebql.estimators.selection import MIDPOINTS
from ebql.tabular.agents import Agent, Turn
from ebql.tabular.behaviours import Behaviour
from ebql.tabular.rules import Rule, quick_normal
from ebql.tabular.schedules import Schedule

Row = list[float]


def learn_plainly(
    world: MDP,
    agent: Agent,
    *,
    episodes: int,
    seed: int,
    epsilon: Schedule,
    learning_rate: Schedule,
    discount: float = 1.0,
) -> list[list[Row]]:
    """Learn as `ebql.tabular.learn` does for one seed; return the tables as lists, `[K][S][A]`.

    The row of a state holds its legal actions only. `action` is a place in that row.
    """
    rng = np.random.default_rng(seed)
    learners, acting = range(agent.learners), range(agent.acting)
    legal = [np.flatnonzero(exists).tolist() for exists in world.exists]
    counts = world.action_counts.tolist()
    first = agent.first_tables(world.n_states, world.n_actions, seed).transpose(2, 0, 1).tolist()
    tables: list[list[Row]] = [
        [[row[a] for a in actions] for row, actions in zip(table, legal, strict=True)] for table in first
    ]
    updates = [[[0] * n for n in counts] for _ in learners]
    visits = [0] * world.n_states
    terminal = world.terminals.tolist()
    successors, cumulative, means, stds = (array.tolist() for array in world.model[:4])
    starts, start_cumulative = world.model.start_states.tolist(), world.model.start_cumulative.tolist()
    epsilons, steps = epsilon.scales(episodes).tolist(), learning_rate.scales(episodes).tolist()
    bootstrap, parameter, looks_back = (
        RULES[agent.rule],
        agent.parameter,
        agent.learners < agent.ensemble_size,
    )
    masked, alternate = agent.turn == Turn.MASKED, agent.turn == Turn.ALTERNATE
    thompson, ucb = agent.behaviour == Behaviour.THOMPSON, agent.behaviour == Behaviour.UCB
    sunrise = agent.rule == Rule.SUNRISE
    time, actor = 0, 0

    def sample(distribution: list[float]) -> int:
        index = 0
        if distribution[0] < 1.0:
            uniform = rng.random()
            while uniform >= distribution[index]:
                index += 1
        return index

    def greedy(state: int) -> int:
        if thompson:
            return argmax(tables[actor][state], rng)
        if ucb:
            members = [[tables[k][state][a] for k in learners] for a in range(counts[state])]
            return argmax([mean(values) + agent.ucb_width * deviation(values) for values in members], rng)
        aggregate = min if agent.pessimistic else sum
        return argmax([aggregate(tables[k][state][a] for k in acting) for a in range(counts[state])], rng)

    for episode in range(episodes):
        if thompson:
            actor = int(rng.random() * len(learners))
        state = starts[sample(start_cumulative)]
        while not terminal[state]:
            visits[state] += 1
            if rng.random() < min(1.0, epsilons[episode] * visits[state] ** -epsilon.power):
                action = int(rng.random() * counts[state])
            else:
                action = greedy(state)

            taken = legal[state][action]
            branch = sample(cumulative[state][taken])
            next_state = successors[state][taken][branch]
            reward = means[state][taken][branch]
            if stds[state][taken][branch] > 0:
                reward += stds[state][taken][branch] * rng.standard_normal()

            members = learners
            if not masked and len(learners) > 1:
                first = time % len(learners) if alternate else int(rng.random() * len(learners))
                members = range(first, first + 1)
            time += 1
            for member in members:
                if masked and rng.random() >= agent.mask_probability:
                    continue
                updates[member][state][action] += 1
                count = updates[member][state][action]
                step = min(1.0, steps[episode] * count**-learning_rate.power)
                target = reward
                if not terminal[next_state]:
                    q = [table[next_state] for table in tables]
                    own = parameter / count if agent.rule in VANISHING else parameter
                    target += discount * bootstrap(q, member, own, step, rng)
                    if sunrise:
                        step *= sunrise_weight(q, member, parameter, rng)
                before = list(tables[0][state]) if looks_back else []
                tables[member][state][action] += step * (target - tables[member][state][action])
                if looks_back:
                    look_back(agent, tables, state, action, before, count)
            state = next_state
    return tables


def look_back(
    agent: Agent, tables: list[list[Row]], state: int, action: int, before: Row, count: int
) -> None:
    """Update the tables that hold the past of the first one, after update `count` of an entry."""
    if agent.rule == Rule.SELF_CORRECTING:
        tables[1][state][action] = before[action]
    elif agent.rule == Rule.SPEEDY:
        tables[1][state] = before
    elif agent.rule == Rule.AVERAGED:
        latest, *snapshots = (table[state][action] for table in tables)
        taken, since = divmod(count - 1, int(agent.parameter))
        if taken and not since:
            snapshots = [before[action], *snapshots[:-1]]
        snapshots[taken:] = [latest] * len(snapshots[taken:])
        for table, value in zip(tables[1:], snapshots, strict=True):
            table[state][action] = value


def argmax(values: Row, rng: np.random.Generator) -> int:
    """Return the index of the largest value; ties are broken at random."""
    best, ties = 0, 1
    for action in range(1, len(values)):
        if values[action] > values[best]:
            best, ties = action, 1
        elif values[action] == values[best]:
            ties += 1
            if rng.random() * ties < 1.0:
                best = action
    return best


def mean(values: Row) -> float:
    """Return the mean, summed in order."""
    return sum(values) / len(values)


def deviation(values: Row) -> float:
    """Return the population standard deviation."""
    centre = mean(values)
    return math.sqrt(sum((value - centre) ** 2 for value in values) / len(values))


def sunrise_weight(q: list[Row], member: int, temperature: float, rng: np.random.Generator) -> float:
    """Return the factor of the step size, which is smaller where members disagree."""
    selected = argmax(q[member], rng)
    return 1 / (1 + math.exp(deviation([row[selected] for row in q]) * temperature)) + 0.5


Bootstrap = Callable[[list[Row], int, float, float, np.random.Generator], float]


def _ensemble(q: list[Row], member: int, _: float, __: float, rng: np.random.Generator) -> float:
    selected = argmax(q[member], rng)
    return mean([row[selected] for k, row in enumerate(q) if k != member])


def _weighted_double(q: list[Row], member: int, c: float, _: float, rng: np.random.Generator) -> float:
    own, other = q[member], q[1 - member]
    best, worst = argmax(own, rng), argmax([-value for value in own], rng)
    gap = abs(other[best] - other[worst])
    return gap / (c + gap) * own[best] + (1 - gap / (c + gap)) * other[best]


def _clipped(q: list[Row], member: int, _: float, __: float, rng: np.random.Generator) -> float:
    selected = argmax(q[member], rng)
    return min(row[selected] for row in q)


def _cross(q: list[Row], member: int, _: float, __: float, rng: np.random.Generator) -> float:
    selected = argmax(q[member], rng)
    others = [row for k, row in enumerate(q) if k != member]
    return others[int(rng.random() * len(others))][selected]


def _redq(q: list[Row], _: int, size: float, __: float, rng: np.random.Generator) -> float:
    subset: list[Row] = []
    for member, row in enumerate(q):
        if rng.random() * (len(q) - member) < size - len(subset):
            subset.append(row)
    return _maxmin(subset)


def _maxmin(q: list[Row]) -> float:
    return float(max(min(values) for values in zip(*q, strict=True)))


def _self_correcting(q: list[Row], _: int, beta: float, __: float, rng: np.random.Generator) -> float:
    return q[0][argmax([new - beta * (new - old) for new, old in zip(*q, strict=True)], rng)]


def _speedy(q: list[Row], _: int, __: float, step: float, ___: np.random.Generator) -> float:
    return max(q[1]) + (1 - step) / step * (max(q[0]) - max(q[1]))


def _split(q: list[Row], member: int, n_index: float, _: float, rng: np.random.Generator) -> float:
    cyclic = q[member:] + q[:member]
    selectors, evaluators = cyclic[: int(n_index)], cyclic[int(n_index) :]
    selected = argmax([sum(values) for values in zip(*selectors, strict=True)], rng)
    return mean([row[selected] for row in evaluators])


def _adaptive(q: list[Row], member: int, _: float, __: float, rng: np.random.Generator) -> float:
    return _split(q, member, best_split(q), 0.0, rng)


def best_split(q: list[Row]) -> int:
    """Return the number of selectors with the least error, from shrunken gaps and the product of Φ's."""
    arms = [list(values) for values in zip(*q, strict=True)]
    means = [mean(values) for values in arms]
    variances: Row = [sum((v - mean(values)) ** 2 for v in values) / (len(q) - 1) for values in arms]
    total = sum((value - mean(means)) ** 2 for value in means)
    noise = mean(variances) / len(q) * (len(arms) - 1)
    if total <= noise:
        return 1
    gaps = [math.sqrt(1 - noise / total) * (max(means) - value) for value in means]
    best = gaps.index(0.0)
    others = [a for a in range(len(arms)) if a != best]

    def error(n_index: int) -> float:
        n_evaluators = len(q) - n_index
        p_mistakes = []
        for a in others:
            spread = math.sqrt((variances[best] + variances[a]) / n_index)
            p_tie = 0.5 * (gaps[a] == 0)
            p_mistakes.append(0.5 * math.erfc(gaps[a] / spread / math.sqrt(2)) if spread else p_tie)
        p_best: float = math.prod(1 - p for p in p_mistakes)
        right: float = p_best * variances[best] / n_evaluators
        costs = [variances[a] / n_evaluators + gaps[a] ** 2 for a in others]
        wrong: float = sum(p * cost for p, cost in zip(p_mistakes, costs, strict=True))
        return right + (1 - p_best) * wrong / sum(p_mistakes) if sum(p_mistakes) else right

    return min(range(1, len(q)), key=error)


def _variances(q: list[Row]) -> Row:
    """Return the variance over members of each action, with the divisor K - 1."""
    arms = [list(values) for values in zip(*q, strict=True)]
    return [sum((value - mean(arm)) ** 2 for value in arm) / (len(q) - 1) for arm in arms]


def _weighted(q: list[Row], _: int, __: float, ___: float, ____: np.random.Generator) -> float:
    means = [mean(list(values)) for values in zip(*q, strict=True)]
    errors = [math.sqrt(variance / len(q)) for variance in _variances(q)]
    wins = [0.0] * len(means)
    for a, b in enumerate(means):
        for midpoint in MIDPOINTS.tolist():
            point, below = b + errors[a] * midpoint, 1.0
            for j, other in enumerate(means):
                if j != a and errors[j] > 0:
                    below *= quick_normal((point - other) / errors[j])
                elif j != a:
                    below *= 1.0 if point > other else 0.5 * (point == other)
            wins[a] += below
    return sum(win * value for win, value in zip(wins, means, strict=True)) / sum(wins)


def _scores(q: list[Row], member: int, rng: np.random.Generator) -> Row:
    variances, own = _variances(q), q[member]
    best = argmax(own, rng)
    spreads = [math.sqrt(variance + variances[best]) for variance in variances]
    gaps = [value - own[best] for value in own]
    certain = [-math.inf if gap < 0 else 0.0 for gap in gaps]
    return [gap / s if s > 0 else c for gap, s, c in zip(gaps, spreads, certain, strict=True)]


def _t_estimator(q: list[Row], member: int, alpha: float, _: float, rng: np.random.Generator) -> float:
    levels = [0.5 * math.erfc(-score / math.sqrt(2)) for score in _scores(q, member, rng)]
    return mean([value for value, level in zip(q[member], levels, strict=True) if level >= alpha])


def _k_estimator(q: list[Row], member: int, scale: float, _: float, rng: np.random.Generator) -> float:
    weights = [0.5 * math.erfc(-score / scale / math.sqrt(2)) for score in _scores(q, member, rng)]
    return sum(w * value for w, value in zip(weights, q[member], strict=True)) / sum(weights)


def _adaptive_order(q: list[Row], _: int, __: float, ___: float, ____: np.random.Generator) -> float:
    sums = [sum(values) for values in zip(*q, strict=True)]
    best = sums.index(max(sums))
    agreeing = sum(row.index(max(row)) == best for row in q)
    index = math.ceil((len(q) + agreeing) / 4)
    of_index: float = max(sorted(values)[index - 1] for values in zip(*q, strict=True))
    return of_index


def _candidates(q: list[Row], member: int, size: float, _: float, rng: np.random.Generator) -> float:
    own, other = q[member], list(q[1 - member])
    among = [-math.inf] * len(own)
    for _rank in range(min(int(size), len(own))):
        named = argmax(other, rng)
        among[named], other[named] = own[named], -math.inf
    return min(q[1 - member][argmax(among, rng)], max(own))


def _smoothed(q: list[Row], member: int, tau: float, _: float, __: np.random.Generator) -> float:
    own = q[member]
    if len(own) == 1:
        return own[0]
    return (1 - tau) * max(own) + tau * (sum(own) - max(own)) / (len(own) - 1)


# The parameters of these rules are divided by the number of an entry's updates.
VANISHING = frozenset({Rule.ROBUST_MEAN, Rule.SMOOTHED})

RULES: dict[Rule, Bootstrap] = {
    Rule.MAXIMUM: lambda q, member, _, __, ___: max(q[member]),
    Rule.ENSEMBLE: _ensemble,
    Rule.MEAN: lambda q, _, __, ___, ____: max(mean(list(values)) for values in zip(*q, strict=True)),
    Rule.AVERAGED: lambda q, _, __, ___, ____: max(mean(list(values)) for values in zip(*q, strict=True)),
    Rule.MAXMIN: lambda q, _, __, ___, ____: _maxmin(q),
    Rule.WEIGHTED_DOUBLE: _weighted_double,
    Rule.CLIPPED_DOUBLE: _clipped,
    Rule.CROSS: _cross,
    Rule.SUBSET_MINIMUM: _redq,
    Rule.SUNRISE: lambda q, member, _, __, ___: max(q[member]),
    Rule.SELF_CORRECTING: _self_correcting,
    Rule.SPEEDY: _speedy,
    Rule.SPLIT: _split,
    Rule.ADAPTIVE_SPLIT: _adaptive,
    Rule.WEIGHTED: _weighted,
    Rule.T_ESTIMATOR: _t_estimator,
    Rule.K_ESTIMATOR: _k_estimator,
    Rule.ORDER: lambda q, _, index, __, ___: max(sorted(v)[int(index) - 1] for v in zip(*q, strict=True)),
    Rule.ROBUST_MEAN: lambda q, _, rho, __, ___: (
        max(mean(list(values)) for values in zip(*q, strict=True)) - math.sqrt(rho)
    ),
    Rule.ADAPTIVE_ORDER: _adaptive_order,
    Rule.CANDIDATES: _candidates,
    Rule.SMOOTHED: _smoothed,
}
