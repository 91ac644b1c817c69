"""The schedules of ε, the learning rate and the target members."""

import numpy as np
import pytest

from ebql.deep.agent import DQN
from ebql.deep.config.agents import AveragedDQNConfig, DQNConfig
from ebql.deep.config.presets import preset_config
from ebql.deep.training.schedules import epsilon_at, learning_rate_at
from ebql.errors import InputError, InputTypeError

STEPS = (0, 50, 100, 1000)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"epsilon_schedule": "linear"}, [1, 0.55, 0.1, 0.1]),
        ({"epsilon_schedule": "exponential"}, [1, 0.1**0.5, 0.1, 0.1]),
        (
            {"epsilon_schedule": "piecewise", "epsilon_points": ((10, 0.8), (60, 0.3), (100, 0.0))},
            [0.8, 0.4, 0.0, 0.0],
        ),
    ],
)
def test_epsilon_follows_its_schedule_and_stays(options, values):
    config = DQNConfig(epsilon_start=1.0, epsilon_end=0.1, epsilon_steps=100, **options).validate()
    assert [epsilon_at(config, step) for step in STEPS] == pytest.approx(values)


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        ("constant", [0.4, 0.4, 0.4, 0.4]),
        ("linear", [0.4, 0.3, 0.2, 0.2]),
        ("cosine", [0.4, 0.3, 0.2, 0.2]),
    ],
)
def test_the_learning_rate_follows_its_schedule_and_stays(schedule, values):
    config = DQNConfig(
        learning_rate=0.4,
        learning_rate_schedule=schedule,
        learning_rate_end=0.2,
        learning_rate_steps=100,
    )
    assert [learning_rate_at(config, step) for step in STEPS] == pytest.approx(values)


def test_half_a_cosine_wave_falls_slowly_at_first():
    config = DQNConfig(learning_rate=1.0, learning_rate_schedule="cosine", learning_rate_steps=100)
    assert learning_rate_at(config, 25) == pytest.approx((1 + np.cos(np.pi / 4)) / 2)


@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "centred-rmsprop"])
@pytest.mark.parametrize("plain", [False, True])
def test_at_the_end_of_a_schedule_to_zero_nothing_moves(optimiser, plain, small, monkeypatch):
    if plain:
        monkeypatch.setenv("EBQL_PLAIN", "1")
    agent = DQN(
        "CartPole-v1",
        **small,
        optimiser=optimiser,
        learning_rate_schedule="linear",
        learning_rate_steps=200,
    )
    before = weights(agent)
    agent.learn(150)
    amid = weights(agent)
    agent.learn(50)  # the last update is at step 200, where the rate is 0
    at_the_end = weights(agent)
    agent.learn(40)
    assert not np.array_equal(before, amid)
    assert not np.array_equal(amid, at_the_end)
    np.testing.assert_array_equal(weights(agent), at_the_end)


def weights(agent):
    return np.concatenate([x.ravel() for name, x in agent._learner.state().items() if "online" in name])


def test_records_tell_the_learning_rate_if_it_moves(small):
    records = []
    agent = DQN("CartPole-v1", **small, learning_rate_schedule="linear", learning_rate_steps=400)
    agent.learn(200, callback=records.append)
    rates = [record["learning_rate"] for record in records if "loss" in record]
    assert rates == pytest.approx([5e-4 * 3 / 4, 5e-4 / 2])
    records.clear()
    DQN("CartPole-v1", **small).learn(100, callback=records.append)
    assert "learning_rate" not in records[0]


def test_a_resumed_run_continues_its_schedules_to_the_same_bits(tmp_path, small):
    options = {
        **small,
        "learning_rate_schedule": "cosine",
        "learning_rate_steps": 300,
        "epsilon_schedule": "exponential",
        "target_period": 1,
        "target_rate": 0.01,
        "reward_scale": 0.1,
    }
    whole = DQN("CartPole-v1", **options).learn(400)
    DQN("CartPole-v1", **options).learn(200, out=tmp_path / "run")
    resumed = DQN.resume(tmp_path / "run", steps=400)
    np.testing.assert_array_equal(weights(resumed), weights(whole))


def test_polyak_averaging_moves_the_target_by_its_rate(small):
    agent = DQN("CartPole-v1", **small, target_rate=0.25)
    learner = agent._learner
    online, target = learner.online.state_dict(), learner.target.state_dict()
    for parameter in learner.online.parameters():
        parameter.data.add_(1.0)
    before = {name: tensor.clone() for name, tensor in target.items()}
    learner.synchronise()
    for name, tensor in learner.target.state_dict().items():
        np.testing.assert_allclose(tensor, 0.75 * before[name] + 0.25 * online[name], rtol=1e-6)


def test_several_moves_at_once_end_where_single_ones_do(small):
    once, singly = (DQN("CartPole-v1", **small, target_rate=0.25)._learner for _ in range(2))
    for learner in (once, singly):
        for parameter in learner.online.parameters():
            parameter.data.add_(1.0)
    once.synchronise(3)
    for _ in range(3):
        singly.synchronise()
    for ours, theirs in zip(once.target.parameters(), singly.target.parameters(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_the_values_of_scaled_rewards_are_scaled(small):
    plain = DQN("CartPole-v1", **small).learn(60)
    scaled = DQN("CartPole-v1", **small, reward_scale=0.5).learn(60)
    rewards = [agent._training.replay.state()["rewards"] for agent in (plain, scaled)]
    assert (rewards[0] == 1.0).all()
    assert (rewards[1] == 0.5).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"learning_rate_end": -1e-4}, "learning-rate-end must not be negative"),
        ({"learning_rate_steps": 0}, "learning-rate-steps must be positive"),
        ({"target_rate": 0.0}, "target-rate must be positive"),
        ({"target_rate": 1.5}, "target-rate must lie between 0 and 1"),
        ({"reward_scale": 0.0}, "reward-scale must be positive"),
        ({"epsilon_schedule": "exponential", "epsilon_end": 0.0}, "never reaches 0"),
        ({"epsilon_schedule": "piecewise"}, "needs epsilon-points"),
        ({"epsilon_points": ((0, 1.0),)}, "need epsilon-schedule piecewise"),
        ({"epsilon_schedule": "piecewise", "epsilon_points": ((5, 1.0), (5, 0.5))}, "non-negative and incr"),
        ({"epsilon_schedule": "piecewise", "epsilon_points": ((0, 1.0), (9, -0.1))}, "between 0 and 1"),
    ],
)
def test_a_schedule_out_of_range_is_refused_in_one_line(options, told):
    with pytest.raises(InputError, match=told) as refusal:
        DQNConfig().override(**options)
    assert "\n" not in str(refusal.value)


def test_points_must_be_pairs():
    with pytest.raises(InputTypeError, match="a list of pairs"):
        DQNConfig().override(epsilon_points=(0, 1.0))


def test_snapshots_are_whole_copies():
    with pytest.raises(InputError, match="target-rate must be 1"):
        AveragedDQNConfig().override(target_rate=0.5)


def test_points_survive_json():
    config = DQNConfig().override(epsilon_schedule="piecewise", epsilon_points=[[0, 1], [100, 0.5]])
    assert config.epsilon_points == ((0, 1.0), (100, 0.5))
    assert DQNConfig.from_json(config.to_json()) == config


def test_young_and_tians_exploration_is_random_until_learning_starts():
    config = preset_config(DQNConfig, "minatar-young-tian")
    assert [epsilon_at(config, step) for step in (0, 5_000, 55_000, 105_000, 10**6)] == pytest.approx(
        [1, 1, 0.55, 0.1, 0.1]
    )
