"""Learning from data: values, exact resume, and what needs an environment."""

import json

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from ebql.deep.agent import DQN, EBQL, Agent
from ebql.deep.agents import Rainbow
from ebql.deep.training.offline import OfflineTraining
from ebql.errors import InputError
from ebql.runs import RunFolder


def two_steps(n=40):
    """x = 0 → 1 → end. Action 1 earns 1 at x = 0, action 0 earns 2 at x = 1; all pairs are there."""
    x, a = np.arange(n) % 2, np.arange(n) // 2 % 2
    return {
        "observations": x[:, None].astype(np.float32),
        "actions": a,
        "rewards": np.where(x == 0, a, 2.0 * (1 - a)),
        "next_observations": np.ones((n, 1), np.float32),
        "terminations": x == 1,
    }


SPACES = Box(0, 1, (1,), np.float32), Discrete(2)
EXACT = [[0.5 * 2, 1 + 0.5 * 2], [2, 0]]


@pytest.mark.parametrize("kind", [DQN, EBQL])
def test_values_of_known_data_are_reached_without_an_environment(kind):
    agent = kind.for_spaces(*SPACES, hidden=(32,), discount=0.5, target_period=50, learning_rate=3e-3)
    agent.learn_offline(two_steps(), 1_500)
    values = agent.together(agent.q_values(np.array([[0.0], [1.0]])))
    assert values == pytest.approx(np.array(EXACT), abs=0.05)
    assert agent.steps == 1_500
    with pytest.raises(InputError, match="pass it again as `environment`"):
        agent.learn(10)


def test_target_copies_count_updates(small, monkeypatch):
    agent = DQN.for_spaces(*SPACES, hidden=(4,), target_period=40)
    copies = []
    monkeypatch.setattr(agent._learner, "synchronise", lambda: copies.append(agent.steps))
    agent.learn_offline(two_steps(), 100)
    agent.learn_offline(two_steps(), 30)
    assert copies == [40, 80, 120]


@pytest.fixture
def run(tmp_path, small):
    DQN("CartPole-v1", **small).learn(300, out=tmp_path / "online")
    return tmp_path / "online"


def content(folder):
    last = max((folder / "checkpoints").iterdir(), key=lambda path: path.name)
    files = {path.name: path.read_bytes() for path in last.iterdir()}
    return {"name": last.name, "metrics": (folder / "metrics.jsonl").read_bytes(), **files}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (EBQL, {"data": "masked", "prioritized": True, "ensemble_size": 3}),
        (EBQL, {"members": "cycle", "split": 2, "learning_rate_schedule": "cosine"}),
        (Rainbow, {"n_step": 1, "atoms": 11, "v_min": 0.0, "v_max": 20.0}),
    ],
)
def test_a_run_from_data_goes_on_to_the_same_bits(kind, options, run, tmp_path, small):
    options = {**small, "log_period": 40, "evaluation_period": 80, "evaluation_episodes": 2, **options}
    options["checkpoint_period"] = 50
    whole = kind("CartPole-v1", **options).learn_offline(run, 160, out=tmp_path / "whole")

    def stop_at_120(record):
        if record["step"] >= 120:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        kind("CartPole-v1", **options).learn_offline(run, 160, out=tmp_path / "cut", callback=stop_at_120)
    assert RunFolder.open(tmp_path / "cut").checkpoints.steps() == [50, 100]
    resumed = Agent.resume(tmp_path / "cut")
    assert (resumed.steps, whole.steps) == (160, 160)
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


def test_each_of_the_two_checkpoints_has_the_data_and_it_is_written_no_third_time(run, tmp_path, small):
    small["checkpoint_period"] = 20
    DQN("CartPole-v1", **small).learn_offline(run, 40, out=tmp_path / "offline")
    first, second = sorted((tmp_path / "offline" / "checkpoints").iterdir())
    layout = json.loads((second / "manifest.json").read_text())["manifest"]["arrays"]
    observations = layout["replay.observations"]["file"]
    assert not (first / observations).samefile(second / observations)
    written = (first / observations).stat().st_ino
    DQN.resume(tmp_path / "offline", steps=60)
    _, third = sorted((tmp_path / "offline" / "checkpoints").iterdir())
    assert (third.name, (third / observations).stat().st_ino) == (f"{60:012d}", written)
    about = RunFolder.open(tmp_path / "offline").config["data"]
    assert about == {"kind": "run", "source": str(run), "rows": 300}


def test_an_offline_run_is_data_itself(run, tmp_path, small):
    DQN("CartPole-v1", **small).learn_offline(run, 5, out=tmp_path / "first")
    agent = EBQL("CartPole-v1", **small).learn_offline(tmp_path / "first", 5)
    assert agent._training.replay.size == 300


def test_evaluations_are_played_in_the_environment(run, small):
    small |= {"evaluation_period": 20, "evaluation_episodes": 2}
    records = []
    agent = DQN("CartPole-v1", **small).learn_offline(run, 40, callback=records.append)
    evaluated = [record for record in records if "evaluation/return" in record]
    assert [record["step"] for record in evaluated] == [20, 40]
    assert all(record["bias/states"] > 0 for record in evaluated)
    assert records[-1]["evaluation/return"] == agent.evaluate(2).mean


def test_learning_goes_on_in_the_environment(run, small):
    agent = DQN("CartPole-v1", **small).learn_offline(run, 30)
    weights = agent.q_values(np.zeros(4)).copy()
    agent.learn(60)
    assert agent.steps == 90
    assert agent._training.replay.size == 60
    agent.learn_offline(run, 10)
    assert agent.steps == 100
    assert not np.array_equal(agent.q_values(np.zeros(4)), weights)


def test_a_second_call_draws_other_batches(small):
    agent = DQN.for_spaces(*SPACES, hidden=(4,))
    draws = []
    for _ in range(2):
        agent.learn_offline(two_steps(), 1)
        assert isinstance(agent._training, OfflineTraining)
        draws.append(agent._training.sample()[1].tolist())
    assert draws[0] != draws[1]


def test_a_run_that_never_saved_its_data_starts_again(run, tmp_path, small):
    folder = tmp_path / "offline"
    DQN("CartPole-v1", **small).learn_offline(run, 5, out=folder)
    for name in ("metrics.jsonl", "checkpoints"):
        (folder / name).rename(tmp_path / name)
    with pytest.raises(InputError, match="stopped before it had saved what it began with: start it again"):
        DQN.resume(folder)


def test_data_that_does_not_fit_leaves_no_folder(tmp_path, small):
    with pytest.raises(
        InputError, match=r"observations have shape \(1,\), but the environment's have \(4,\)"
    ):
        DQN("CartPole-v1", **small).learn_offline(two_steps(), 10, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="updates must be at least 1, not 0"):
        DQN("CartPole-v1", **small).learn_offline(two_steps(), 0)
