"""The bias of agents of other libraries, against values that are known exactly."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.monitor import Monitor
from torch import nn

import ebql
from ebql import MaxminDQN, measure_bias
from ebql.environments import MDP, MDPEnv
from ebql.errors import InputError, InputTypeError

DISCOUNT = 0.93
N_STATES = 6


@pytest.fixture(scope="module")
def mdp():
    """A random MDP; rewards have both signs, and episodes end in one state."""
    rng = np.random.default_rng(7)
    transitions = rng.dirichlet(np.full(N_STATES, 0.5), (N_STATES, 2))
    terminals = np.arange(N_STATES) == N_STATES - 1
    return MDP(transitions, rng.normal(0, 1, (N_STATES, 2)), 0.5, np.eye(N_STATES)[0], terminals)


def measured(mdp, policy, q, **options):
    """Measure the bias of a table under a time limit."""
    return measure_bias(
        policy,
        lambda: TimeLimit(MDPEnv(mdp), 90),
        q_values=lambda states: q[states],
        discount=DISCOUNT,
        episodes=200,
        **options,
    )


class Predicting:
    """An agent with a table, and Stable-Baselines3's `predict`."""

    def __init__(self, actions):
        self.actions = actions

    def predict(self, states, state=None, episode_start=None, deterministic=False):
        assert deterministic
        return self.actions[states], state


def test_the_optimal_q_values_have_no_bias(mdp):
    q = mdp.optimal_values(DISCOUNT)
    best = q.argmax(-1)
    by_predict = measured(mdp, Predicting(best), q)
    assert by_predict.method == "continued"
    assert by_predict.states > 800
    assert abs(by_predict.mean) < 2.5 * by_predict.standard_error
    assert measured(mdp, lambda states: best[states], q) == by_predict
    assert measured(mdp, lambda states: torch.from_numpy(best)[states], q) == by_predict


def test_an_error_of_the_q_values_is_measured_in_full(mdp):
    q = mdp.optimal_values(DISCOUNT)
    exact, wrong = (measured(mdp, Predicting(q.argmax(-1)), q + error) for error in (0, 2))
    assert wrong.mean == pytest.approx(exact.mean + 2, rel=0.02)  # a hundredth hides behind the cut


def values_of(mdp, actions):
    """Return Q of the policy that takes `actions` (S,), by iteration."""
    q, rewards = np.zeros((N_STATES, 2)), (mdp.transitions * mdp.reward_means).sum(-1)
    going_on = np.arange(N_STATES) != N_STATES - 1
    for _ in range(2000):
        v = q[np.arange(N_STATES), actions] * going_on
        q = rewards + DISCOUNT * mdp.transitions @ v
    return q


def test_a_policy_that_is_not_greedy_is_compared_with_its_own_returns(mdp):
    """The worst actions, and their exact values: the values of the greedy actions would be too large."""
    worst = mdp.optimal_values(DISCOUNT).argmin(-1)
    q = values_of(mdp, worst)
    bias = measured(mdp, Predicting(worst), q)
    assert abs(bias.mean) < 2.5 * bias.standard_error
    assert bias.agreement < 1
    greedy = measured(mdp, nn.Identity(), q)  # a module is played greedily
    assert greedy.mean < -3 * greedy.standard_error


class Table(nn.Module):
    """Q-values of one-hot states, as a CleanRL network has them: observations are cast to floats."""

    def __init__(self, q):
        super().__init__()
        self.network = nn.Linear(N_STATES, 2, bias=False)
        self.network.weight = nn.Parameter(torch.from_numpy(q.T.copy()).float())
        self.dropout = nn.Dropout(0.9)  # off while the module is measured

    def forward(self, observations):
        assert observations.dtype == torch.float32
        return self.network(self.dropout(observations))


class OneHot(gymnasium.ObservationWrapper):
    observation_space = Box(0, 1, (N_STATES,), np.float64)

    def observation(self, state):
        return np.eye(N_STATES)[state]


def test_a_pytorch_module_is_its_own_q_values(mdp):
    q = mdp.optimal_values(DISCOUNT)
    table = Table(q)
    bias = measure_bias(table, lambda: TimeLimit(OneHot(MDPEnv(mdp)), 90), discount=DISCOUNT, episodes=200)
    of_table = measured(mdp, Predicting(q.argmax(-1)), q)
    assert (bias.mean, bias.states) == (pytest.approx(of_table.mean, abs=1e-5), of_table.states)
    assert table.training


def test_the_mean_of_members_is_measured(mdp):
    q = mdp.optimal_values(DISCOUNT)
    members = np.stack([q - 3, q, q + 9], 1)
    bias = measured(mdp, Predicting(q.argmax(-1)), members)
    assert bias.mean == pytest.approx(measured(mdp, Predicting(q.argmax(-1)), q + 2).mean)
    assert bias.spread == pytest.approx(np.std([-3, 0, 9]))


@pytest.mark.parametrize(("whole", "wrapper"), [(True, Monitor), (False, lambda env: env)])
def test_dqn_of_stable_baselines3(ending, predict_constantly, whole, wrapper):
    model = DQN("MlpPolicy", ending(), gamma=0.9, buffer_size=10, device="cpu")
    value = ending().value(0.9)
    predict_constantly(model.q_net, value)
    policy, discount = (model, None) if whole else (model.policy, 0.9)
    bias = measure_bias(policy, lambda: wrapper(TimeLimit(ending(), 60)), discount=discount, episodes=60)
    assert bias.method == "continued"
    assert bias.value == pytest.approx(value)
    assert abs(bias.mean) < 2.5 * bias.standard_error


def test_qr_dqn_of_sb3_contrib_says_the_mean_of_its_quantiles(ending, predict_constantly):
    model = QRDQN(
        "MlpPolicy", ending(), gamma=0.9, buffer_size=10, policy_kwargs={"n_quantiles": 2}, device="cpu"
    )
    value = ending().value(0.9)
    # Two quantiles of two actions: the first quantile of each, then the second.
    predict_constantly(model.quantile_net, [value - 5, value - 5, value + 5, value + 5])
    bias = measure_bias(model, lambda: TimeLimit(ending(), 60), episodes=60)
    assert bias.value == pytest.approx(value)
    assert abs(bias.mean) < 2.5 * bias.standard_error


def test_an_agent_of_this_package_measures_itself():
    """Maxmin's values are its members' minimum, which only the agent knows."""
    agent = MaxminDQN("CartPole-v1", hidden=(8,), discount=0.9)
    assert measure_bias(agent, "CartPole-v1", episodes=3, seed=4) == agent.measure_bias(episodes=3, seed=4)


class Shelf(gymnasium.Env):
    """Two steps; observations are a dictionary; actions are 5 and 6. Action 6 pays 3."""

    observation_space = Dict({"time": Box(0, 9, (1,), np.float32), "kind": Discrete(3)})
    action_space = Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observation(), {}

    def step(self, action):
        self.time += 1
        return self.observation(), 3.0 * (action == 6), self.time == 2, False, {}

    def observation(self):
        return {"time": np.full(1, self.time, np.float32), "kind": self.time % 3}


def test_observations_and_actions_are_those_of_the_environment():
    seen = []

    def q_values(observations):
        seen.append(observations)
        return np.tile([99.0, 4.0], (len(observations["time"]), 1))

    bias = measure_bias(
        lambda observations: np.full(len(observations["time"]), 6),
        Shelf(),
        q_values=q_values,
        discount=0.5,
        episodes=1,
    )
    assert [(x["time"].tolist(), x["kind"].tolist()) for x in seen] == [([[0.0]], [0]), ([[1.0]], [1])]
    assert bias.mean == pytest.approx(((4 - 4.5) + (4 - 3)) / 2)


def test_a_vector_environment(ending):
    vector = SyncVectorEnv([ending] * 3, autoreset_mode=AutoresetMode.NEXT_STEP)
    value = ending().value(0.9)
    bias = measure_bias(
        lambda x: np.zeros(len(x), int),
        vector,
        q_values=lambda x: np.full((len(x), 2), value),
        discount=0.9,
        episodes=300,
    )
    assert bias.method == "complete"
    assert abs(bias.mean) < 2.5 * bias.standard_error


def zero(observations):
    return np.zeros((len(observations), 2))


def test_what_cannot_be_measured_is_told(ending):
    first = zero(np.zeros(1))
    act = Predicting(np.zeros(1, int)).predict
    for policy, options, line in [
        (
            PPO("MlpPolicy", ending(), device="cpu"),
            {},
            "No Q-values were found in PPO: pass q_values, a function",
        ),
        (act, {}, "No Q-values were found in method"),
        (act, {"q_values": zero}, "method does not say its discount: pass discount"),
        (act, {"q_values": zero, "discount": 1.5}, "discount must lie between 0 and 1, not 1.5."),
        (act, {"q_values": zero, "discount": 0.9, "episodes": 0}, "episodes must be at least 1, not 0."),
        (act, {"q_values": zero, "discount": 0.9, "tolerance": 2}, "tolerance must lie between 0 and 1"),
        (act, {"q_values": lambda _: first[0], "discount": 0.9}, r"must return \(1, 2\) .*, not \(2,\)."),
        (nn.Linear(1, 3), {"discount": 0.9}, r"or \(1, members, 2\), not \(1, 3\)."),
        (act, {"q_values": lambda _: first * np.nan, "discount": 0.9}, "not a finite number"),
        (lambda _: [7], {"q_values": zero, "discount": 0.9}, r"lie between 0 and 1, not \[7\]."),
        (lambda _: [0.0], {"q_values": zero, "discount": 0.9}, "1 whole numbers for 1 observations, not fl"),
        (lambda _: [0, 0], {"q_values": zero, "discount": 0.9}, r"int64 of shape \(2,\)"),
    ]:
        with pytest.raises(InputError, match=line):
            measure_bias(policy, ending(), **options)
    with pytest.raises(InputTypeError, match="A policy must have predict"):
        measure_bias(3, ending(), q_values=zero, discount=0.9)


def test_it_is_imported_from_the_top():
    assert "measure_bias" in ebql.__all__
