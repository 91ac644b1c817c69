"""A run's loop: its heartbeat."""

import pytest

from ebql.deep import running
from ebql.deep.agent import DQN


@pytest.fixture
def at_every_step(monkeypatch):
    monkeypatch.setattr(running, "_BETWEEN_HEARTBEATS", 0.0)


def test_the_heart_beats_before_the_first_step_and_then_goes_on(small, at_every_step):
    beats, records = [], []
    agent = DQN("CartPole-v1", **{**small, "log_period": 1000})
    agent.learn(30, callback=records.append, heartbeat=beats.append)
    assert beats == list(range(31))
    assert [record["step"] for record in records] == [30]
    agent.learn(5, heartbeat=beats.append)
    assert beats[31:] == list(range(30, 36))


def test_the_heart_waits_between_beats(small, monkeypatch):
    monkeypatch.setattr(running, "_BETWEEN_HEARTBEATS", float("inf"))
    beats = []
    DQN("CartPole-v1", **small).learn(30, heartbeat=beats.append)
    assert beats == [0]


def test_a_heartbeat_changes_nothing_that_a_run_keeps(small, tmp_path, at_every_step):
    beats = []
    for name, heartbeat in (("silent", None), ("watched", beats.append)):
        DQN("CartPole-v1", **small).learn(120, out=tmp_path / name, heartbeat=heartbeat)
        DQN.resume(tmp_path / name, steps=150, heartbeat=heartbeat)
    assert beats == [*range(121), *range(120, 151)]
    silent, watched = (DQN.load(tmp_path / name)._learner.state() for name in ("silent", "watched"))
    assert all((silent[name] == watched[name]).all() for name in silent)
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("silent", "watched")]
    assert metrics[0] == metrics[1]
