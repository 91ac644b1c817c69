"""A run's loop: its heartbeat, requests to stop, and failures."""

import json
import signal

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


class Interrupting(gymnasium.Wrapper):
    """Interrupts the process at the fifth step, counted over all environments."""

    taken = 0

    def step(self, action):
        Interrupting.taken += 1
        if Interrupting.taken == 5:
            signal.raise_signal(signal.SIGINT)
        return super().step(action)


@pytest.fixture
def interrupting(monkeypatch):
    """Return a function that makes environments of which one interrupts the process."""
    monkeypatch.setattr(Interrupting, "taken", 0)
    return lambda: Interrupting(gymnasium.make("CartPole-v1"))


def evaluations(folder):
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [record["step"] for record in records if "evaluation/return" in record]


def test_ctrl_c_stops_an_evaluation_and_the_resumed_run_repeats_it(
    small, interrupting, tmp_path, capsys, monkeypatch
):
    """In the end the run is the one that nobody interrupted, to the byte."""
    options = {**small, "evaluation_period": 70, "evaluation_episodes": 2}
    EBQL("CartPole-v1", **options).learn(150, out=tmp_path / "whole")
    run, told = tmp_path / "run", "Stopped at step 70; to continue: ebql resume"
    with pytest.raises(KeyboardInterrupt, match=told):
        EBQL("CartPole-v1", **options, evaluation_environment=interrupting).learn(150, out=run)
    assert Interrupting.taken == 5
    assert capsys.readouterr().err == "stopping after a checkpoint; press Ctrl-C again to stop at once\n"
    assert RunFolder.open(run).checkpoints.steps()[-1] == 70
    assert evaluations(run) == []
    with monkeypatch.context() as patch:
        patch.setattr(EBQL, "evaluate", lambda *_: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt, match=told):
            EBQL.resume(run, evaluation_environment="CartPole-v1")
    EBQL.resume(run, evaluation_environment="CartPole-v1")
    assert evaluations(run) == [70, 140, 150]
    assert (run / "metrics.jsonl").read_bytes() == (tmp_path / "whole" / "metrics.jsonl").read_bytes()


def test_a_request_to_stop_before_an_evaluation_stops_it(small, tmp_path):
    def request(record):
        if record["step"] == 60 and not requested:
            requested.append(signal.raise_signal(signal.SIGINT))

    requested: list[None] = []
    options = {**small, "log_period": 60, "evaluation_period": 60, "evaluation_episodes": 2}
    with pytest.raises(KeyboardInterrupt, match="Stopped at step 60"):
        EBQL("CartPole-v1", **options).learn(100, out=tmp_path / "run", callback=request)
    assert evaluations(tmp_path / "run") == []
    EBQL.resume(tmp_path / "run")
    assert evaluations(tmp_path / "run") == [60, 100]


def test_ctrl_c_in_the_last_evaluation_waits_for_its_end(small, interrupting, tmp_path):
    options = {**small, "evaluation_period": 1000, "evaluation_episodes": 2}
    EBQL("CartPole-v1", **options, evaluation_environment=interrupting).learn(50, out=tmp_path / "run")
    assert Interrupting.taken > 5
    assert evaluations(tmp_path / "run") == [50]


def test_a_request_to_stop_is_read_once_per_step(small, tmp_path, monkeypatch):
    """A request that arrives between two reads would stop the run without a checkpoint."""
    reads = []

    def requested(_):
        reads.append(True)
        return signal.SIGINT if len(reads) >= 30 else None

    monkeypatch.setattr(run_loop._StopRequests, "requested", requested)
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
