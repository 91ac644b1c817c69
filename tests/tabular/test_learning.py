import signal
import subprocess
import sys
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebql.environments import MDP, MDPEnv, bandit, chain, mdp_from_gymnasium, meta_chain
from ebql.errors import RunError
from ebql.tabular import EBQL, QLearning, inverse_visits, learn


def test_results_depend_on_the_seed_and_not_on_the_threads():
    one = learn(meta_chain(), EBQL(3), episodes=300, seeds=6, threads=1)
    four = learn(meta_chain(), EBQL(3), episodes=300, seeds=6, threads=4)
    np.testing.assert_array_equal(one.tables, four.tables)
    np.testing.assert_array_equal(one.decision_values, four.decision_values)
    assert not np.array_equal(one.tables[0], one.tables[1])
    np.testing.assert_array_equal(
        learn(meta_chain(), EBQL(3), episodes=300, seeds=[4]).tables[0], one.tables[4]
    )


def test_shapes_and_records():
    history = learn(meta_chain(), EBQL(4), episodes=25, seeds=3, record_every=10)
    assert history.tables.shape == (3, 4, 24, 10)
    assert history.recorded_at.tolist() == [10, 20, 25]
    assert history.decision_values.shape == (3, 3, 6, 2)
    assert history.returns.shape == history.lengths.shape == (3, 25)
    assert history.updates == history.lengths.sum() > 75
    states = [decision.state for decision in meta_chain().decisions]
    np.testing.assert_allclose(
        history.decision_values[:, -1], history.q_values()[:, states, :2], rtol=0, atol=1e-15
    )


@pytest.mark.parametrize("agent", [QLearning(), EBQL(3), EBQL(7)], ids=lambda a: a.label)
def test_agents_find_the_exact_values_of_a_noiseless_mdp(agent):
    world = mdp_from_gymnasium("CliffWalking-v1")
    history = learn(world, agent, episodes=1500 * agent.ensemble_size, epsilon=0.5, learning_rate=1.0)
    on_path = [36, 24, 29, 35]
    exact = world.optimal_values(1.0)[on_path].max(-1)
    np.testing.assert_allclose(history.q_values()[0][on_path].max(-1), exact, atol=1e-9)


def test_gymnasium_environments_reach_known_values_by_stepping():
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    history = learn(lake, EBQL(2), episodes=400, epsilon=1.0, learning_rate=1.0, discount=0.9)
    exact = mdp_from_gymnasium(lake).optimal_values(0.9)
    assert history.q_values()[0, 0].max() == pytest.approx(exact[0].max(), abs=1e-9)
    assert exact[0].max() == pytest.approx(0.9**5)


def test_stepping_and_the_compiled_loop_learn_the_same_to_the_bit(any_agent):
    """In a deterministic environment only the agent draws random numbers, so both must agree."""
    kwargs = {"episodes": 40, "seeds": [3], "epsilon": inverse_visits(0.5), "max_steps": 60}
    stepped = learn("CliffWalking-v1", any_agent, **kwargs)
    compiled = learn(mdp_from_gymnasium("CliffWalking-v1"), any_agent, **kwargs)
    np.testing.assert_array_equal(stepped.tables, compiled.tables)
    np.testing.assert_array_equal(stepped.returns, compiled.returns)
    np.testing.assert_array_equal(stepped.lengths, compiled.lengths)


def test_stepping_is_reproducible_and_takes_flattened_tuples():
    first, second = (learn("Blackjack-v1", EBQL(3), episodes=30, seeds=2) for _ in range(2))
    assert first.tables.shape == (2, 3, 32 * 11 * 2, 2)
    np.testing.assert_array_equal(first.tables, second.tables)
    alone = learn("Blackjack-v1", EBQL(3), episodes=30, seeds=[1])
    np.testing.assert_array_equal(alone.tables[0], first.tables[1])
    assert not np.array_equal(first.tables[0], first.tables[1])


class _Lottery(gymnasium.Env):
    """One state, one step; resets draw a number, and both actions pay the next one."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.np_random.random()
        return 0, {}

    def step(self, action):
        return 0, self.np_random.random(), True, False, {}


def test_a_stepped_environment_never_draws_the_agents_numbers():
    history = learn(_Lottery(), QLearning(), episodes=4, seeds=[0, 5])
    for seed, rewards in zip(history.seeds, history.returns, strict=True):
        assert not np.isin(rewards, np.random.default_rng(seed).random(100)).any()


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_actions_say_nothing_about_the_rewards_of_a_stepped_environment(epsilon):
    """With α = 1, the first reward is left in the entry of the action that was taken."""
    history = learn(_Lottery(), QLearning(), episodes=1, seeds=2000, epsilon=epsilon, learning_rate=1.0)
    actions, rewards = history.tables[:, 0, 0].argmax(-1), history.returns[:, 0]
    assert abs(np.corrcoef(actions, rewards)[0, 1]) < 4 / np.sqrt(2000)
    assert abs(rewards.mean() - 0.5) < 4 / np.sqrt(12 * 2000)


class _Corridor(gymnasium.Env):
    """One state with reward 1 that never terminates; only truncation ends an episode."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(1, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        assert action == 3
        return 0, 1.0, False, True, {}


def test_truncation_bootstraps_by_stepping_and_compiled():
    endless = MDP(np.ones((2, 1, 2)) / [1, np.inf], np.ones((2, 1)), np.zeros(()), [1, 0], [False, True])
    for world in (_Corridor(), endless):
        history = learn(world, QLearning(), episodes=2000, learning_rate=0.1, discount=0.5, max_steps=1)
        assert history.q_values()[0, 0, 0] == pytest.approx(2.0, abs=1e-6)
        assert set(history.lengths[0].tolist()) == {1}


def test_returns_are_discounted():
    history = learn(chain(2.0, std=0.0), QLearning(), episodes=50, epsilon=1.0, discount=0.5)
    assert set(history.returns[0].tolist()) == {0.0, 1.0}


def test_ties_are_broken_evenly():
    # All arms tie before the first pull, which leaves a 1 in the table entry of its arm.
    history = learn(bandit([1.0] * 4, 0.0), QLearning(), episodes=1, seeds=4000, epsilon=0.0)
    pulls = history.tables[:, 0, 0].sum(0)
    assert pulls.sum() == 4000
    assert np.all(np.abs(pulls - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75))


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 1.0), st.integers(1, 60))
def test_alpha_of_one_over_n_is_the_sample_mean(scale, episodes):
    history = learn(
        bandit([scale], 0.3), QLearning(), episodes=episodes, epsilon=0, learning_rate=inverse_visits(1.0)
    )
    assert history.q_values()[0, 0, 0] == pytest.approx(history.returns[0].mean())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": 0}, "episodes must be at least 1"),
        ({"seeds": 0}, "number of seeds"),
        ({"seeds": [-1]}, "at least 0"),
        ({"seeds": [3, 3]}, "must not repeat"),
        ({"seeds": []}, "number of seeds"),
        ({"discount": 1.5}, "discount"),
        ({"epsilon": 1.1}, "between 0 and 1"),
        ({"epsilon": float("nan")}, "between 0 and 1"),
        ({"learning_rate": lambda episode: -1.0}, "between 0 and 1"),
        ({"learning_rate": inverse_visits(-1)}, "at least 0, not -1"),
        ({"record_every": 0}, "record_every"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_bad_settings_are_one_clear_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        learn(chain(0.1), QLearning(), **{"episodes": 5, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": 2.0}, "episodes must be a whole number"),
        ({"seeds": [1.7]}, "A seed must be a whole number"),
        ({"agent": EBQL}, "agent must be an Agent"),
        ({"agent": "ebql"}, "agent must be an Agent"),
    ],
)
def test_things_of_the_wrong_kind_are_one_clear_line(arguments, message):
    with pytest.raises(TypeError, match=message):
        learn(chain(0.1), **{"agent": QLearning(), "episodes": 5, **arguments})


def test_numpy_integers_count():
    assert learn(chain(0.1), EBQL(np.int64(3)), episodes=np.int64(5), seeds=np.int64(2)).tables.shape[0] == 2
    assert learn(chain(0.1), QLearning(), episodes=5, seeds=np.array([4, 7])).seeds == (4, 7)


def test_members_of_ebql_learn_equally_often_and_in_no_order():
    """With α = 1 and reward 1, a member's table shows whether it was updated."""
    updated = np.zeros((400, 3), dtype=bool)
    history = learn(bandit([1.0], 0.0), EBQL(3), episodes=2, seeds=400, learning_rate=1.0)
    updated[:] = history.tables[:, :, 0, 0] != 0
    both_to_one = np.mean(updated.sum(1) == 1)
    assert abs(both_to_one - 1 / 3) < 5 * np.sqrt(2 / 9 / 400)
    assert np.all(np.abs(updated.mean(0) - 5 / 9) < 5 * np.sqrt(20 / 81 / 400))


def test_an_interrupt_stops_a_seed_that_would_never_end():
    """In a separate process, because a signal reaches only the main thread."""
    endless = """
import numpy as np
from ebql.environments import MDP
from ebql.tabular import QLearning, learn
world = MDP(np.ones((2, 1, 2)) / [1, np.inf], np.ones((2, 1)), np.zeros(()), [1, 0], [False, True])
learn(world, QLearning(), episodes=1, max_steps=10)
print("compiled", flush=True)
learn(world, QLearning(), episodes=1, max_steps=10**12)
"""
    with subprocess.Popen(
        [sys.executable, "-c", endless], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "compiled\n"
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in error


def test_environments_that_no_table_can_hold():
    with pytest.raises(TypeError, match="Discrete observations"):
        learn("CartPole-v1", QLearning(), episodes=1)
    with pytest.raises(TypeError, match="Discrete actions"):
        learn("Pendulum-v1", QLearning(), episodes=1)
    with pytest.raises(ValueError, match="Unknown environment 'NoSuch-v0'"):
        learn("NoSuch-v0", QLearning(), episodes=1)
    with pytest.raises(TypeError, match="world must be an MDP"):
        learn(3, QLearning(), episodes=1)


def test_a_failing_seed_is_not_swallowed():
    def broken(_: int) -> None:
        raise RuntimeError("progress display broke")

    with pytest.raises(RuntimeError, match="progress display broke"):
        learn(chain(0.1), QLearning(), episodes=5, seeds=20, on_seed=broken)


def test_illegal_actions_of_taxi_are_never_tried_unless_masks_are_off():
    taxi = gymnasium.make("Taxi-v4")
    legal = mdp_from_gymnasium(taxi, action_masks=True).action_masks
    kwargs = {"episodes": 20, "epsilon": 0.5, "learning_rate": 0.5, "discount": 0.9}
    masked = learn(taxi, EBQL(3), **kwargs).tables[0]
    assert (masked[:, ~legal] == 0).all()
    assert (masked[:, legal] != 0).any()
    assert (learn(taxi, EBQL(3), action_masks=False, **kwargs).tables[0][:, ~legal] != 0).any()


def test_masks_of_a_stepped_environment_are_those_of_its_mdp_to_the_bit():
    """Taxi is deterministic apart from its first state, which here is always the same."""
    mdp = mdp_from_gymnasium("Taxi-v4", action_masks=True)
    start = np.zeros(500)
    start[328] = 1
    world = replace(mdp, start=start, time_limit=60)
    kwargs = {"episodes": 30, "seeds": [3], "epsilon": 0.3, "discount": 0.9}
    for agent in (QLearning(), EBQL(3), EBQL(3).exploring("ucb")):
        stepped, compiled = learn(MDPEnv(world), agent, **kwargs), learn(world, agent, **kwargs)
        np.testing.assert_array_equal(stepped.tables, compiled.tables)
        np.testing.assert_array_equal(stepped.returns, compiled.returns)


class _Forgetful(gymnasium.Env):
    """Each episode of `length` steps stays in a state of its own; only the first one's reset gives a mask."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3)

    def __init__(self, length=1, *, new_state=False):
        self.length, self.new_state = length, new_state
        self.taken = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.taken.append([])
        return self._state(), {"action_mask": np.array([0, 1, 0])} if len(self.taken) == 1 else {}

    def step(self, action):
        self.taken[-1].append(int(action))
        return self._state(), 0.0, len(self.taken[-1]) == self.length, False, {}

    def _state(self):
        return int(self.new_state and len(self.taken) > 1)


@pytest.mark.parametrize("new_state", [False, True])
def test_every_action_is_legal_after_a_reset_without_a_mask(new_state):
    env = _Forgetful(new_state=new_state)
    learn(env, QLearning(), episodes=301, epsilon=1.0)
    assert env.taken[0] == [1]
    counts = np.bincount(np.concatenate(env.taken[1:]), minlength=3)
    assert np.all(np.abs(counts - 100) < 5 * np.sqrt(300 * 2 / 9))


def test_a_mask_may_not_be_missing_in_a_later_step():
    env = _Forgetful(length=2)
    with pytest.raises(RunError, match="gave no action mask, although it gave one"):
        learn(env, QLearning(), episodes=1)
    env = _Forgetful()
    learn(env, QLearning(), episodes=1)
    env.length = 2
    learn(env, QLearning(), episodes=1)  # a new seed, whose first reset gives no mask: it has none

    class Growing(_Forgetful):
        def step(self, action):
            self.length = len(self.taken)
            return super().step(action)

    with pytest.raises(RunError, match="gave no action mask, although it gave one"):
        learn(Growing(), QLearning(), episodes=2)


def test_masks_that_are_ignored_may_be_missing():
    env = _Forgetful(length=3)
    history = learn(env, QLearning(), episodes=100, epsilon=1.0, action_masks=False)
    assert set(history.lengths[0].tolist()) == {3}
    assert set(env.taken[0] + env.taken[1] + env.taken[2]) == {0, 1, 2}
