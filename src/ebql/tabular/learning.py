"""`learn`: train one agent in one environment, with many seeds in parallel."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP, DiscreteEnv, make_discrete
from ebql.environments.lanes.seeded import episode_seed
from ebql.errors import InputError, InputTypeError, whole_number
from ebql.tabular.agents import Agent
from ebql.tabular.kernel import begin, choose, learn_from, run
from ebql.tabular.memory import Memory, Record, Settings, decay_table, empty_memory
from ebql.tabular.schedules import Schedule, as_schedule, inverse_visits

Floats = NDArray[np.float64]
Rate = float | Callable[[int], float] | Schedule
World = MDP | str | gymnasium.Env[Any, Any]

PAPER_LEARNING_RATE = inverse_visits(0.8)


@dataclass(frozen=True, eq=False)
class History:
    """The results of one agent over all seeds.

    `n` seeds, `K` members, `E` episodes, `R` records, `S` states, `A` actions, `D` decisions of the
    environment.

    >>> from ebql.environments import meta_chain
    >>> from ebql.tabular import QLearning
    >>> history = learn(meta_chain(), QLearning(), episodes=100, seeds=3, record_every=50)
    >>> history.returns.shape, history.recorded_at.tolist(), history.decision_values.shape
    ((3, 100), [50, 100], (3, 2, 6, 2))
    """

    world: World
    """The environment that `learn` was given."""
    agent: Agent
    """The agent."""
    discount: float
    """γ."""
    seeds: tuple[int, ...]
    """The n seeds."""
    tables: Floats
    """The members' values after the last episode, (n, K, S, A); with rules that look back, older tables
    come last."""
    returns: Floats
    """The discounted return of each episode, (n, E)."""
    lengths: NDArray[np.int64]
    """The steps of each episode, (n, E)."""
    recorded_at: NDArray[np.int64]
    """The number of finished episodes at each record, (R,)."""
    decision_values: Floats
    """`q_values` in the states of the decisions at each record, (n, R, D, A)."""
    decision_epsilons: Floats
    """The exploration rate of the next visit of these states, (n, R, D)."""
    mean_splits: Floats
    """The mean number of selectors per update, (n,); NaN unless the split is adaptive."""

    @property
    def updates(self) -> int:
        """Number of steps learnt from, over all seeds; one update each unless members are masked."""
        return int(self.lengths.sum())

    def q_values(self) -> Floats:
        """Return the agent's values, `(n, S, A)`: the mean of its members, for Maxmin their minimum."""
        acting = self.tables[:, : self.agent.acting]
        values: Floats = acting.min(1) if self.agent.pessimistic else acting.mean(1)
        return values


def learn(
    world: World,
    agent: Agent,
    *,
    episodes: int,
    seeds: int | Sequence[int] = 1,
    epsilon: Rate = 0.1,
    learning_rate: Rate = PAPER_LEARNING_RATE,
    discount: float = 1.0,
    max_steps: int = 100_000,
    record_every: int = 1,
    action_masks: bool = True,
    threads: int | None = None,
    on_seed: Callable[[int], None] | None = None,
) -> History:
    """Train `agent` in `world` once for each seed; equal seeds give equal results.

    Args:
        world: the environment. An `MDP` runs compiled, with seeds in parallel. A Gymnasium environment or
            id, with finite observations and actions, is stepped from Python.
        agent: `QLearning()`, `DoubleQLearning()`, `EBQL(K)`, any other agent of `ebql.tabular`, or your own
            `Agent`.
        episodes: number of episodes for each seed.
        seeds: the number of seeds, which then start at 0, or a list of seeds.
        epsilon: probability of a uniformly random action: a number, a function of the episode, or a
            `Schedule` (`inverse_visits(0.5)` is 1/√n(s)).
        learning_rate: α, given in the same ways; visits are counted for each entry of each member.
        discount: γ, from 0 to 1.
        max_steps: steps after which an episode is truncated; a shorter limit of the environment also holds.
            Truncation is not termination: the last step still bootstraps.
        record_every: number of episodes between two records of the environment's `decisions`; the last
            episode is always recorded.
        action_masks: whether to choose and bootstrap from legal actions only, in a Gymnasium environment that
            gives masks (`info["action_mask"]` or `action_masks()`). Those of an `MDP` always count.
        threads: number of seeds that run in parallel; by default one per core. It does not change results.
        on_seed: called with each seed that has finished.

    >>> from ebql.environments import meta_chain
    >>> from ebql.tabular import EBQL
    >>> learn(meta_chain(), EBQL(ensemble_size=5), episodes=100, seeds=3).q_values().shape
    (3, 24, 10)
    """
    seeds = _checked_seeds(seeds)
    episodes = whole_number("episodes", episodes, 1)
    max_steps = whole_number("max_steps", max_steps, 1)
    record_every = whole_number("record_every", record_every, 1)
    if not 0 <= discount <= 1:
        raise InputError(f"discount must lie between 0 and 1, not {discount}.")
    if not isinstance(agent, Agent):
        raise InputTypeError(f"agent must be an Agent, such as EBQL(10), not {agent!r}.")
    settings = _settings(agent, episodes, as_schedule(epsilon), as_schedule(learning_rate), discount)
    simulator = _simulator(world, max_steps, action_masks=action_masks)
    recorded_at = np.append(np.arange(record_every, episodes, record_every), episodes)
    n, records = len(seeds), (len(recorded_at), len(simulator.tracked))
    history = History(
        world=world,
        agent=agent,
        discount=float(discount),
        seeds=seeds,
        tables=np.empty((n, agent.ensemble_size, simulator.n_states, simulator.n_actions)),
        returns=np.zeros((n, episodes)),
        lengths=np.zeros((n, episodes), dtype=np.int64),
        recorded_at=recorded_at,
        decision_values=np.empty((n, *records, simulator.tracked_actions)),
        decision_epsilons=np.empty((n, *records)),
        mean_splits=np.full(n, np.nan),
    )

    def learn_seed(index: int) -> int:
        memory = empty_memory(
            agent.first_tables(simulator.n_states, simulator.n_actions, seeds[index]),
            pessimistic=agent.pessimistic,
        )
        record = Record(
            returns=history.returns[index],
            lengths=history.lengths[index],
            at=recorded_at,
            states=simulator.tracked,
            values=history.decision_values[index],
            epsilons=history.decision_epsilons[index],
        )
        simulator.learn(memory, settings, record, seeds[index])
        history.tables[index] = memory.tables.transpose(2, 0, 1)
        if memory.splits[1]:
            history.mean_splits[index] = memory.splits[0] / memory.splits[1]
        return index

    with ThreadPoolExecutor(simulator.threads(threads)) as pool:
        try:
            for future in as_completed([pool.submit(learn_seed, index) for index in range(n)]):
                index = future.result()
                if on_seed is not None:
                    on_seed(seeds[index])
        except BaseException:
            simulator.stop()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            simulator.close()
    return history


def _settings(
    agent: Agent, episodes: int, epsilon: Schedule, learning_rate: Schedule, discount: float
) -> Settings:
    return Settings(
        rule=int(agent.rule),
        turn=int(agent.turn),
        discount=float(discount),
        epsilon_scales=epsilon.scales(episodes),
        epsilon_power=float(epsilon.power),
        epsilon_decay=decay_table(float(epsilon.power)),
        step_scales=learning_rate.scales(episodes),
        step_power=float(learning_rate.power),
        step_decay=decay_table(float(learning_rate.power)),
        plain=agent.plain,
        parameter=float(agent.parameter),
        mask_probability=float(agent.mask_probability),
        learners=agent.learners,
        acting=agent.acting,
        pessimistic=agent.pessimistic,
        behaviour=int(agent.behaviour),
        ucb_width=float(agent.ucb_width),
    )


class _Simulator(Protocol):
    """Runs the seeds of `learn` in an environment."""

    n_states: int
    n_actions: int
    tracked: NDArray[np.int64]  # (D,), states of the decisions
    tracked_actions: int  # the largest number of actions in these states

    def threads(self, requested: int | None) -> int: ...

    def learn(self, memory: Memory, settings: Settings, record: Record, seed: int) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


def _simulator(world: World, max_steps: int, *, action_masks: bool) -> _Simulator:
    if isinstance(world, MDP):
        return _CompiledSimulator(world, max_steps)
    if isinstance(world, str | gymnasium.Env):
        owned = isinstance(world, str)
        return _SteppedSimulator(make_discrete(world, action_masks=action_masks), max_steps, owned=owned)
    raise InputTypeError(
        f"world must be an MDP, a Gymnasium environment or an id, not {type(world).__name__}."
    )


class _CompiledSimulator:
    def __init__(self, world: MDP, max_steps: int) -> None:
        self.world = world
        self.max_steps = min(max_steps, world.time_limit or max_steps)
        self.n_states, self.n_actions = world.n_states, world.n_actions
        self.tracked = np.array([decision.state for decision in world.decisions], dtype=np.int64)
        tracked_actions = np.flatnonzero(world.exists[self.tracked].any(0))
        self.tracked_actions = int(tracked_actions.max(initial=-1)) + 1
        self._stop = np.zeros(1, dtype=np.bool_)

    def threads(self, requested: int | None) -> int:
        return requested or os.cpu_count() or 1

    def learn(self, memory: Memory, settings: Settings, record: Record, seed: int) -> None:
        rng = np.random.default_rng(seed)
        legal = self.world.legal_actions
        general = None if settings.plain and legal is None else True
        run(self.world.model, memory, settings, record, self.max_steps, self._stop, rng, general, legal)

    def stop(self) -> None:
        self._stop[0] = True

    def close(self) -> None:
        pass


class _SteppedSimulator:
    def __init__(self, env: DiscreteEnv, max_steps: int, *, owned: bool) -> None:
        self.env, self.owned, self.max_steps = env, owned, max_steps
        self._stopped = False
        self.n_states, self.n_actions = env.n_states, env.n_actions
        self.tracked = np.empty(0, dtype=np.int64)
        self.tracked_actions = 0

    def threads(self, requested: int | None) -> int:
        del requested  # all seeds step the same environment
        return 1

    def learn(self, memory: Memory, settings: Settings, record: Record, seed: int) -> None:
        rng = np.random.default_rng(seed)
        # Gymnasium makes the same generator of a seed as NumPy: with the agent's own seed, the environment
        # would draw the agent's random numbers.
        environment_seed = episode_seed(seed, 0, 0)
        legal: NDArray[np.int64] | None = None
        for episode in range(len(record.returns)):
            state = self.env.reset(environment_seed if episode == 0 else None)
            if self.env.action_mask is not None and legal is None:
                legal = np.zeros((self.n_states, self.n_actions), np.int64)
            n_actions = self._enter(state, legal)
            begin(memory, settings, rng)
            weight = 1.0
            for step in range(self.max_steps):
                action = choose(memory, settings, state, n_actions, legal, episode, rng)
                next_state, reward, terminated, truncated = self.env.step(action)
                n_actions = 0 if terminated else self._enter(next_state, legal)
                learn_from(
                    memory, settings, state, action, reward, next_state, n_actions, legal, episode, rng
                )
                record.returns[episode] += weight * reward
                record.lengths[episode] = step + 1
                weight *= settings.discount
                state = next_state
                if terminated or truncated:
                    break
                if self._stopped:
                    return

    def _enter(self, state: int, legal: NDArray[np.int64] | None) -> int:
        """Write the current state's legal actions to its row of `legal`; return how many there are."""
        if legal is None or self.env.action_mask is None:
            return self.n_actions
        actions = np.flatnonzero(self.env.action_mask)
        legal[state, : len(actions)] = actions
        return len(actions)

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        if self.owned:
            self.env.close()


def _checked_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """Return the seeds; raise an error for repeated or negative ones."""
    if not isinstance(seeds, Sequence | np.ndarray):
        return tuple(range(whole_number("The number of seeds", seeds, 1)))
    checked = tuple(whole_number("A seed", seed, 0) for seed in seeds)
    if not checked:
        raise InputError("The number of seeds must be at least 1, not 0.")
    if len(set(checked)) < len(checked):
        raise InputError("Seeds must not repeat: equal seeds give equal results.")
    return checked
