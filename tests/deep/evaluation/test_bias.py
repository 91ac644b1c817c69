import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit

from ebql.deep.agent import DQN
from ebql.deep.evaluation.bias import discounted_returns, horizon, measured_bias
from ebql.deep.evaluation.rollout import Trace, play, play_past_limit
from ebql.environments import MDP, PAPER_MEANS, MDPEnv, make_lanes


def trace(rewards, values, *, terminated=True, lost_lives=(), cut_value=0.0):
    n = len(rewards)
    columns = (np.array(rewards, float), np.array(values, float), np.ones(n), np.full(n, 0.5))
    return Trace(*columns, terminated, lost_lives, cut_value)


def test_returns_are_discounted_to_the_end():
    assert discounted_returns(np.array([8.0, 4.0, 2.0]), 0.5).tolist() == [10.5, 5.0, 2.0]


def test_a_worked_example():
    episodes = [trace([8, 4, 2], [11.5, 4, 2]), trace([0], [3])]
    bias = measured_bias(episodes, discount=0.5)
    assert bias.mean == pytest.approx((1 - 1 + 0 + 3) / 4)
    assert bias.absolute == pytest.approx(5 / 4)
    assert bias.value == pytest.approx(20.5 / 4)
    assert bias.discounted_return == pytest.approx(17.5 / 4)
    assert bias.normalised == pytest.approx(3 / 17.5)
    assert bias.deviation == pytest.approx(np.std([1, -1, 0, 3]) / (17.5 / 4))
    assert (bias.spread, bias.agreement, bias.states, bias.dropped) == (1, 0.5, 4, 0)
    # Episodes are the samples: residual sums are 0 − 3·0.75 and 3 − 0.75.
    assert bias.standard_error == pytest.approx(np.sqrt(2 * 2 * 2.25**2) / 4)


def test_the_training_reward_is_the_reference():
    assert measured_bias([trace([50], [1])], 0.9, reward_clip=1.0).mean == 0
    assert measured_bias([trace([50], [5])], 0.9, reward_scale=0.1).mean == 0
    assert measured_bias([trace([50], [2])], 0.9, reward_scale=0.1, reward_clip=2.0).mean == 0


def test_a_lost_life_ends_the_return_but_not_the_game():
    game = trace([8, 4, 1000, 2], [10, 4, 1001, 2], lost_lives=(1,))
    assert discounted_returns(game.rewards, 0.5, {1}).tolist() == [10, 4, 1001, 2]
    assert measured_bias([game], discount=0.5).absolute == 0
    assert game.score == 1014


@pytest.mark.parametrize(
    ("discount", "tolerance", "steps"),
    [(0.5, 0.1, 4), (0.5, 0.125, 3), (0.99, 0.01, 459), (0.0, 0.01, 1), (0.9, 1.0, 0), (1.0, 0.01, None)],
)
def test_the_horizon_is_the_first_step_at_which_the_discount_falls_to_the_tolerance(
    discount, tolerance, steps
):
    assert horizon(discount, tolerance) == steps


def test_states_too_close_to_the_limit_are_dropped_in_terminated_episodes_too():
    """γ⁴ ≤ 0.1 < γ³: of a limit of 6, the first three states count, whatever the episode's end."""
    cut = trace([1] * 6, [0] * 6, terminated=False)
    ended = trace([1] * 5, [0] * 5)
    bias = measured_bias([cut, ended], discount=0.5, tolerance=0.1, limit=6)
    assert (bias.states, bias.dropped, bias.method) == (6, 5, "dropped")
    whole = [2 - 2 / 2**remaining for remaining in (6, 5, 4, 5, 4, 3)]
    assert bias.discounted_return == pytest.approx(np.mean(whole))
    assert (bias.limit, bias.horizon) == (6, 4)
    assert "5 states were dropped: they lie fewer than 4 steps before the time limit of 6" in bias.explanation


def test_a_lost_life_saves_no_state_close_to_the_limit():
    """Whether a life is lost is an outcome as well."""
    cut = trace([1] * 6, [0] * 6, terminated=False, lost_lives=(0, 4))
    bias = measured_bias([cut], discount=0.5, tolerance=0.1, limit=6)
    assert (bias.states, bias.dropped) == (3, 3)
    assert bias.discounted_return == pytest.approx((1 + 1.875 + 1.75) / 3)


def test_an_unknown_limit_is_the_shortest_cut_episode():
    episodes = [trace([1] * 5, [0] * 5, terminated=False), trace([1] * 5, [0] * 5), trace([1], [0])]
    bias = measured_bias(episodes, discount=0.5, tolerance=0.1)
    assert (bias.states, bias.dropped, bias.method, bias.limit) == (5, 6, "shortest-cut", 5)
    assert "The time limit is unknown" in bias.explanation


def test_what_a_counted_return_misses_is_the_agents_own_estimate():
    cut = trace([1] * 5, [0] * 5, terminated=False, cut_value=-64)
    bias = measured_bias([cut], discount=0.5, tolerance=0.1, limit=5)
    assert bias.states == 2
    assert bias.discounted_return == pytest.approx((1.9375 - 2 + 1.875 - 4) / 2)
    assert bias.bootstrapped == pytest.approx((2 + 4) / 2)


def test_where_no_state_is_far_enough_every_return_is_completed_by_the_estimate():
    """With γ = 1 no return is ever whole; 5, 4, … rewards of 1 are left, and 10 after the cut."""
    cut = trace([1] * 5, [20] * 5, terminated=False, cut_value=10)
    for discount, tolerance in ((1.0, 0.01), (1.0, 0.0)):
        bias = measured_bias([cut], discount, tolerance=tolerance, limit=5)
        assert (bias.states, bias.dropped, bias.method) == (5, 0, "bootstrapped")
        assert bias.mean == pytest.approx(20 - 13)
        assert bias.bootstrapped == 10
        assert "contribute 10 on average" in bias.explanation


def test_cuts_after_different_numbers_of_steps_are_told():
    episodes = [trace([1] * n, [0] * n, terminated=False, cut_value=1) for n in (50, 80)]
    bias = measured_bias(episodes, discount=0.5)
    assert (bias.method, bias.limit, bias.states) == ("bootstrapped", None, 130)
    assert "no unbiased measurement is possible without continuing" in bias.explanation
    too_early = measured_bias(episodes, discount=0.5, limit=60)  # 50 is not where the limit lies
    assert too_early == bias


def test_a_cut_episode_that_others_outlast_shows_no_limit():
    """γ⁴ ≤ 0.1 < γ³: a limit of 5 would drop all but the first two states of the long episodes."""
    cut, ended = trace([1] * 5, [3] * 5, terminated=False, cut_value=8), trace([1] * 9, [3] * 9)
    whole = [2 - 2 / 2**left for left in (9, 8, 7, 6, 5, 4, 3, 2, 1)]
    completed = [2 + 6 / 2**left for left in (5, 4, 3, 2, 1)]
    bias = measured_bias([ended, cut], discount=0.5, tolerance=0.1)
    assert (bias.method, bias.limit, bias.states, bias.dropped) == ("bootstrapped", None, 14, 0)
    assert bias.mean == pytest.approx(3 - np.mean(whole + completed))
    assert bias.bootstrapped == pytest.approx(sum(8 / 2**left for left in (5, 4, 3, 2, 1)) / 14)
    assert bias.explanation.startswith("Some episodes were cut after fewer steps than others took, so no")
    assert measured_bias([ended, cut], discount=0.5, tolerance=0.1, limit=9) == bias
    longest = trace([1] * 9, [3] * 9, terminated=False)
    assert measured_bias([ended, longest], discount=0.5, tolerance=0.1).method == "shortest-cut"


def test_without_cuts_or_a_limit_every_return_is_complete():
    for discount in (0.5, 1.0):
        bias = measured_bias([trace([1] * 3, [0] * 3)], discount)
        assert (bias.method, bias.states, bias.dropped, bias.limit) == ("complete", 3, 0, None)
    assert measured_bias([trace([1] * 3, [0] * 3)], 0.5, limit=1000).method == "complete"


class Ending(gymnasium.Env):
    """One state: every step pays `reward` and ends the episode with the probability `end`."""

    observation_space = Box(0, 1, (1,), np.float32)
    action_space = Discrete(2)

    def __init__(self, reward, end):
        self.reward, self.end = reward, end

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), self.reward, bool(self.np_random.random() < self.end), False, {}


def bias_of_the_exact_value(reward, end, discount, limit, *, goes_on, episodes, error=0.0):
    """Measure V(s) = r / (1 − γ (1 − p)), plus an error, under a time limit."""
    value = reward / (1 - discount * (1 - end)) + error
    lanes = make_lanes(lambda: TimeLimit(Ending(reward, end), limit), 10)
    traces, cut = play_past_limit(
        lambda observations: np.full((len(observations), 1, 2), value),
        lanes,
        episodes,
        seed=3,
        pessimistic=False,
        extra_steps=horizon(discount) if goes_on else None,
    )
    return measured_bias(traces, discount, limit=cut)


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize(
    ("reward", "end", "discount", "limit"),
    [
        (1, 0.02, 0.9, 60),
        (-1, 0.02, 0.9, 60),
        (1, 0.02, 0.9, 100),
        (1, 0.005, 0.99, 500),
        (-1, 0.005, 0.99, 500),
        (1, 0.1, 0.9, 50),
        (-1, 0.01, 0.95, 120),
        (1, 0.02, 0.9, 30),
    ],
)
def test_the_exact_value_has_no_bias_under_any_time_limit(reward, end, discount, limit, goes_on):
    bias = bias_of_the_exact_value(reward, end, discount, limit, goes_on=goes_on, episodes=300)
    assert bias.method == ("continued" if goes_on else "dropped" if limit > 30 else "bootstrapped")
    assert abs(bias.mean) < 2.5 * bias.standard_error


def test_an_error_of_the_value_is_measured_in_full_past_the_limit():
    """The values are off by 2; continued or dropped, one hundredth of it may hide behind the cut."""
    for goes_on in (True, False):
        bias = bias_of_the_exact_value(1, 0.02, 0.9, 60, goes_on=goes_on, episodes=300, error=2.0)
        assert abs(bias.mean - 2) < 2.5 * bias.standard_error
    short = bias_of_the_exact_value(1, 0.02, 0.9, 10, goes_on=False, episodes=300, error=2.0)
    assert short.method == "bootstrapped"
    assert short.mean < 1.5


def test_an_mdp_of_many_states_has_no_bias_at_its_exact_q_values():
    """A random MDP under its optimal policy, rewards of both signs, ends in some states only."""
    rng = np.random.default_rng(7)
    transitions = rng.dirichlet(np.full(6, 0.5), (6, 2))
    terminals = np.arange(6) == 5
    mdp = MDP(transitions, rng.normal(0, 1, (6, 2)), 0.5, np.eye(6)[0], terminals)
    discount = 0.93
    q = mdp.optimal_values(discount)
    lanes = make_lanes(lambda: TimeLimit(MDPEnv(mdp), 90), 10)
    for extra_steps in (horizon(discount), None):
        traces, limit = play_past_limit(
            lambda states: q[states][:, None],
            lanes,
            400,
            seed=0,
            pessimistic=False,
            extra_steps=extra_steps,
        )
        bias = measured_bias(traces, discount, limit=limit)
        assert bias.method == ("dropped" if extra_steps is None else "continued")
        assert abs(bias.mean) < 2.5 * bias.standard_error
        assert bias.states > 1000


def test_playing_on_past_the_limit_changes_no_score():
    def play_cartpole(extra_steps):
        lanes = make_lanes("CartPole-v1", 3)

        def balance(observations):
            pull = observations[:, 2:3] + observations[:, 3:4]
            return np.stack([-pull, pull], -1)

        traces, _ = play_past_limit(balance, lanes, 6, seed=1, pessimistic=False, extra_steps=extra_steps)
        return traces

    on, within = play_cartpole(200), play_cartpole(None)
    assert [trace.score for trace in on] == [trace.score for trace in within]
    assert [trace.length for trace in on] == [len(trace.rewards) for trace in within]
    assert max(len(trace.rewards) for trace in on) == 700
    assert not any(trace.terminated for trace in on if len(trace.rewards) == 700)


class Finite(Ending):
    """Knows only `steps` steps, such as a table of data."""

    def __init__(self, steps):
        super().__init__(1.0, 0.0)
        self.steps = steps

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return super().reset(seed=seed)

    def step(self, action):
        self.time += 1
        if self.time > self.steps:
            raise IndexError("no more data")
        return super().step(action)


def test_an_environment_that_cannot_go_on_is_measured_within_its_limit(small):
    environment = TimeLimit(Finite(40), 40)
    agent = DQN(lambda: TimeLimit(Finite(40), 40), **small, discount=0.5)
    bias = agent.measure_bias(environment, episodes=3)
    assert (bias.method, bias.limit, bias.states, bias.dropped) == ("dropped", 40, 3 * 34, 3 * 6)
    assert environment._max_episode_steps == 40


def test_an_environment_of_the_users_gets_its_limit_back(small):
    environment = TimeLimit(Ending(1.0, 0.0), 40)
    agent = DQN(lambda: TimeLimit(Ending(1.0, 0.0), 40), **small, discount=0.5)
    bias = agent.measure_bias(environment, episodes=3)
    assert (bias.method, bias.limit, bias.states) == ("continued", 47, 3 * 41)
    assert environment._max_episode_steps == 40


def test_an_exploring_evaluation_still_measures_the_greedy_policys_bias(small):
    options = {**small, "discount": 0.5}
    exploring = DQN(lambda: TimeLimit(Ending(1.0, 0.1), 40), **options, evaluation_epsilon=0.5)
    greedy = DQN(lambda: TimeLimit(Ending(1.0, 0.1), 40), **options)
    evaluation = exploring.evaluate(5, seed=0)
    assert evaluation.bias == greedy.evaluate(5, seed=0).bias == exploring.measure_bias(episodes=5, seed=0)


def test_exact_values_have_no_bias():
    """On CartPole with a constant action, the return from each state is known once it is played."""
    lanes = make_lanes("CartPole-v1", 3)

    def values(observations):
        return np.tile(np.array([1.0, 0.0]), (len(observations), 4, 1))

    episodes = play(values, lanes, episodes=7, seed=0, pessimistic=False)
    assert len(episodes) == 7
    exact = [
        Trace(t.rewards, discounted_returns(t.rewards, 0.9), t.spreads, t.agreements, True) for t in episodes
    ]
    bias = measured_bias(exact, 0.9)
    assert bias.mean == bias.absolute == bias.standard_error == 0
    assert measured_bias(episodes, 0.9).agreement == 1


def test_an_agent_measures_its_own_bias(small):
    agent = DQN("CartPole-v1", **small).learn(100)
    bias = agent.measure_bias(episodes=4, seed=1)
    assert bias == agent.evaluate(4, seed=1).bias
    assert bias.mean == pytest.approx(bias.value - bias.discounted_return)
    assert agent.measure_bias("CartPole-v1", episodes=4, seed=1) == bias


class Ladder(gymnasium.Env):
    """Shows the time; pays 4, then 0.5, then −3 and so on, and ends after 3 steps: terminated, or cut."""

    observation_space = Box(0, 100, (1,), np.float32)
    action_space = Discrete(2)
    pay = (4.0, 0.5, -3.0)

    def __init__(self, cut=False):
        self.cut = cut

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        over = self.time == 3
        observation = np.full(1, self.time, np.float32)
        return observation, self.pay[self.time - 1], over and not self.cut, over and self.cut, {}


# By hand with γ = 0.5: −3, 0.5 − 1.5, 4 − 0.5; clipped to ±1: −1, 0.5 − 0.5, 1 + 0.
@pytest.mark.parametrize(
    ("clip", "mean"), [(None, (-3 - 1 + 3.5) / 3), (1.0, (-1 + 0 + 1) / 3), (2.0, (-2 - 0.5 + 1.75) / 3)]
)
def test_bias_is_measured_with_the_agents_discount_and_clip(clip, mean, small):
    agent = DQN(Ladder, **small, discount=0.5, reward_clip=clip)
    bias = agent.measure_bias(episodes=3)
    assert bias.discounted_return == pytest.approx(mean)
    assert (bias.states, bias.dropped) == (9, 0)
    assert agent.evaluate(3).bias.discounted_return == pytest.approx(mean)
    assert agent.evaluate(3).returns == (1.5, 1.5, 1.5)
    recorded = agent.evaluate(3).to_json()
    assert recorded["bias/discounted_return"] == pytest.approx(mean)


def test_the_values_compared_are_those_of_the_states_on_the_way(small):
    agent = DQN(Ladder, **small, discount=0.5)
    expected = agent.q_values(np.arange(3, dtype=np.float32)[:, None]).max(-1).mean()
    assert agent.measure_bias(episodes=2).value == pytest.approx(float(expected), rel=1e-5)


def test_an_agent_drops_the_states_whose_return_was_cut(small):
    agent = DQN(lambda: Ladder(cut=True), **small, discount=0.5)
    bias = agent.measure_bias(episodes=4, tolerance=0.25)  # 0.5³ and 0.5² are small enough, 0.5 isn't
    assert (bias.states, bias.dropped) == (8, 4)
    at_the_cut = float(agent.q_values(np.full(1, 3, np.float32)).max())
    whole = np.array([3.5, -1]) + at_the_cut * np.array([0.125, 0.25])
    assert bias.discounted_return == pytest.approx(whole.mean())
    everything = agent.evaluate(4).bias  # the tolerance is a hundredth
    assert (everything.method, everything.states, everything.dropped) == ("bootstrapped", 12, 0)


def test_dqn_overestimates_on_the_meta_chain_as_a_table_does():
    """The sign of the measured bias is that of Q̂ − Q* in the states where episodes begin."""
    agent = DQN(
        "ebql/MetaChain-v0",
        hidden=(),
        discount=1.0,
        loss="mse",
        learning_rate=0.01,
        epsilon_end=1.0,
        update_period=2,
        target_period=50,
        replay_size=20_000,
        learning_starts=200,
        evaluation_period=0,
    ).learn(2500)
    bias = agent.measure_bias(episodes=400, seed=1)
    of_table = agent.q_values(np.arange(0, 4 * len(PAPER_MEANS), 4)).mean(1)[:, 0] - PAPER_MEANS
    assert of_table.mean() > 0.3
    assert bias.mean > 0.3
    assert bias.mean > 4 * bias.standard_error
