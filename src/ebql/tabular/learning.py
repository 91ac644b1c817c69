"""`learn`: one agent in one world, over many seeds at once."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from ebql.environments import MDP, DiscreteEnv, make_discrete
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
    """What the seeds of one agent learnt, and how they got there.

    `n` seeds, `K` members, `E` episodes, `R` records, `D` followed decisions of the world.
    """

    world: World
    agent: Agent
    discount: float
    seeds: tuple[int, ...]
    tables: Floats  # (n, K, S, A), as the last episode left them; a rule that looks back has its past last
    returns: Floats  # (n, E), discounted
    lengths: NDArray[np.int64]  # (n, E), steps
    recorded_at: NDArray[np.int64]  # (R,), number of episodes done
    decision_values: Floats  # (n, R, D, A), `q_values` in the followed states
    decision_epsilons: Floats  # (n, R, D), exploration rate of the next visit
    mean_splits: Floats  # (n,), members that selected, mean over updates; NaN unless the split is adaptive

    @property
    def updates(self) -> int:
        """Number of steps learnt from, over all seeds: one update each, but for masked members."""
        return int(self.lengths.sum())

    def q_values(self) -> Floats:
        """The mean of the members that the agent acts on, of Maxmin their minimum, `(n, S, A)`."""
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
    threads: int | None = None,
    on_seed: Callable[[int], None] | None = None,
) -> History:
    """Let `agent` learn in `world`, once for each seed; equal seeds give equal results.

    Args:
        world: an `MDP`, which runs compiled with the seeds in parallel; or a Gymnasium environment or
            its id, with finite observations and actions, which is stepped from Python.
        agent: `QLearning()`, `DoubleQLearning()`, `EBQL(K)`, any other of this floor's agents, or an
            `Agent` of your own.
        episodes: how many episodes each seed lives.
        seeds: how many seeds, counted from 0, or the seeds themselves.
        epsilon: probability of a uniformly random action: a number, a function of the episode, or a
            `Schedule` (`inverse_visits(0.5)` is 1/√n(s)).
        learning_rate: α, likewise; visits are counted for each member's own entry.
        discount: γ, from 0 to 1.
        max_steps: an episode is truncated after so many steps, or after the world's own limit.
            Truncation is not termination: the last step still bootstraps.
        record_every: episodes between two looks at the world's `decisions`; the last is always seen.
        threads: seeds that run at once; by default one per core. It does not change the results.
        on_seed: called with a seed when that seed is done.
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
    ground = _ground(world, max_steps)
    recorded_at = np.append(np.arange(record_every, episodes, record_every), episodes)
    n, looks = len(seeds), (len(recorded_at), len(ground.followed))
    history = History(
        world=world,
        agent=agent,
        discount=float(discount),
        seeds=seeds,
        tables=np.empty((n, agent.ensemble_size, ground.n_states, ground.n_actions)),
        returns=np.zeros((n, episodes)),
        lengths=np.zeros((n, episodes), dtype=np.int64),
        recorded_at=recorded_at,
        decision_values=np.empty((n, *looks, ground.followed_actions)),
        decision_epsilons=np.empty((n, *looks)),
        mean_splits=np.full(n, np.nan),
    )

    def learn_seed(index: int) -> int:
        memory = empty_memory(
            agent.first_tables(ground.n_states, ground.n_actions, seeds[index]),
            pessimistic=agent.pessimistic,
        )
        record = Record(
            returns=history.returns[index],
            lengths=history.lengths[index],
            at=recorded_at,
            states=ground.followed,
            values=history.decision_values[index],
            epsilons=history.decision_epsilons[index],
        )
        ground.learn(memory, settings, record, seeds[index])
        history.tables[index] = memory.tables.transpose(2, 0, 1)
        if memory.splits[1]:
            history.mean_splits[index] = memory.splits[0] / memory.splits[1]
        return index

    with ThreadPoolExecutor(ground.threads(threads)) as pool:
        try:
            for done in as_completed([pool.submit(learn_seed, index) for index in range(n)]):
                index = done.result()
                if on_seed is not None:
                    on_seed(seeds[index])
        except BaseException:
            ground.stop()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            ground.close()
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


class _Ground(Protocol):
    """A world as `learn` sees it, whichever side it lives on."""

    n_states: int
    n_actions: int
    followed: NDArray[np.int64]  # (D,), states of the world's decisions
    followed_actions: int  # the largest number of actions in these states

    def threads(self, wanted: int | None) -> int: ...

    def learn(self, memory: Memory, settings: Settings, record: Record, seed: int) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


def _ground(world: World, max_steps: int) -> _Ground:
    if isinstance(world, MDP):
        return _CompiledGround(world, max_steps)
    if isinstance(world, str | gymnasium.Env):
        return _SteppedGround(make_discrete(world), max_steps, owned=isinstance(world, str))
    raise InputTypeError(f"A world is an MDP, a Gymnasium environment or its id, not {type(world).__name__}.")


class _CompiledGround:
    def __init__(self, world: MDP, max_steps: int) -> None:
        self.world = world
        self.max_steps = min(max_steps, world.time_limit or max_steps)
        self.n_states, self.n_actions = world.n_states, world.n_actions
        self.followed = np.array([decision.state for decision in world.decisions], dtype=np.int64)
        self.followed_actions = int(world.action_counts[self.followed].max(initial=0))
        self._stop = np.zeros(1, dtype=np.bool_)

    def threads(self, wanted: int | None) -> int:
        return wanted or os.cpu_count() or 1

    def learn(self, memory: Memory, settings: Settings, record: Record, seed: int) -> None:
        rng = np.random.default_rng(seed)
        otherwise = None if settings.plain else True
        run(self.world.model, memory, settings, record, self.max_steps, self._stop, rng, otherwise)

    def stop(self) -> None:
        self._stop[0] = True

    def close(self) -> None:
        pass


class _SteppedGround:
    def __init__(self, env: DiscreteEnv, max_steps: int, *, owned: bool) -> None:
        self.env, self.owned = env, owned
        self.max_steps = max_steps
        self._stopped = False
        self.n_states, self.n_actions = env.n_states, env.n_actions
        self.followed = np.empty(0, dtype=np.int64)
        self.followed_actions = 0

    def threads(self, wanted: int | None) -> int:
        del wanted  # All seeds step the same environment.
        return 1

    def learn(self, memory: Memory, settings: Settings, record: Record, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for episode in range(len(record.returns)):
            state = self.env.reset(seed if episode == 0 else None)
            begin(memory, settings, rng)
            weight = 1.0
            for step in range(self.max_steps):
                action = choose(memory, settings, state, self.n_actions, episode, rng)
                next_state, reward, terminated, truncated = self.env.step(action)
                next_actions = 0 if terminated else self.n_actions
                learn_from(memory, settings, state, action, reward, next_state, next_actions, episode, rng)
                record.returns[episode] += weight * reward
                record.lengths[episode] = step + 1
                weight *= settings.discount
                state = next_state
                if terminated or truncated:
                    break
                if self._stopped:
                    return

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        if self.owned:
            self.env.close()


def _checked_seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds, each once and none negative."""
    if not isinstance(seeds, Sequence | np.ndarray):
        return tuple(range(whole_number("the number of seeds", seeds, 1)))
    checked = tuple(whole_number("a seed", seed, 0) for seed in seeds)
    if not checked:
        raise InputError("the number of seeds must be at least 1, not 0.")
    if len(set(checked)) < len(checked):
        raise InputError("seeds must not repeat: equal seeds give equal results, not more evidence.")
    return checked
