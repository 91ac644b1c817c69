"""A run's loop: its heartbeat, requests to stop, and failures."""

import json
import signal
from contextlib import contextmanager

import gymnasium
import pytest

from ebql.deep.agent import DQN, EBQL
from ebql.deep.training import run_loop
from ebql.errors import Interrupted, RunError
from ebql.runs import RunFolder


@pytest.fixture
def at_every_step(monkeypatch):
    monkeypatch.setattr(run_loop, "_BETWEEN_HEARTBEATS", 0.0)


def test_the_heart_beats_before_the_first_step_and_then_goes_on(small, at_every_step):
    beats, records = [], []
    agent = DQN("CartPole-v1", **{**small, "log_period": 1000})
    agent.learn(30, callback=records.append, heartbeat=beats.append)
    assert beats == list(range(31))
    assert [record["step"] for record in records] == [30]
    agent.learn(5, heartbeat=beats.append)
    assert beats[31:] == list(range(30, 36))


def test_the_heart_waits_between_beats(small, monkeypatch):
    monkeypatch.setattr(run_loop, "_BETWEEN_HEARTBEATS", float("inf"))
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


def test_ctrl_c_in_an_evaluation_stops_after_its_checkpoint(small, tmp_path, capsys):
    """The evaluation is recorded, so that a resumed run need not play it again."""

    class Interrupting(gymnasium.Wrapper):
        def step(self, action):
            if not interrupted:
                interrupted.append(True)
                signal.raise_signal(signal.SIGINT)
            return super().step(action)

    def make():
        return Interrupting(gymnasium.make("CartPole-v1"))

    interrupted: list[bool] = []
    options = {**small, "evaluation_period": 70, "evaluation_episodes": 2}
    agent = EBQL("CartPole-v1", **options, evaluation_environment=make)
    with pytest.raises(KeyboardInterrupt, match="Stopped at step 70; to continue: ebql resume"):
        agent.learn(1000, out=tmp_path / "run")
    assert capsys.readouterr().err == "stopping after a checkpoint; press Ctrl-C again to stop at once\n"
    assert RunFolder.open(tmp_path / "run").checkpoints.steps()[-1] == 70
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [(record["step"], "evaluation/return" in record) for record in records] == [(70, True)]


def test_a_request_to_stop_is_read_once_per_step(small, tmp_path, monkeypatch):
    """A request that arrives between two reads would stop the run without a checkpoint."""
    reads = []

    @contextmanager
    def requests(*, enabled):
        def requested():
            reads.append(enabled)
            return signal.SIGINT if len(reads) >= 30 else None

        yield requested

    monkeypatch.setattr(run_loop, "_stop_requests", requests)
    with pytest.raises(Interrupted, match="Stopped at step 30"):
        DQN("CartPole-v1", **small).learn(200, out=tmp_path / "run")
    assert RunFolder.open(tmp_path / "run").checkpoints.steps()[-1] == 30


def test_a_failure_is_reported_even_if_its_traceback_cannot_be_written(small, tmp_path, monkeypatch):
    class Worthless(gymnasium.RewardWrapper):
        def reward(self, reward):
            return float("nan")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_loop, "write_text", full)
    agent = DQN(lambda: Worthless(gymnasium.make("CartPole-v1")), **small)
    with pytest.raises(RunError, match=r"the reward nan.*To continue from step 0: ebql resume"):
        agent.learn(20, out=tmp_path / "run")
