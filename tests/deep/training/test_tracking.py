import sys
from types import SimpleNamespace

import pytest

from ebql import DQN
from ebql.deep import Tracking
from ebql.errors import InputError

ABOUT = {"agent": "ebql", "environment": "Pole-v1", "options": {"seed": 0}, "n_actions": 2}


class FakeTracker(SimpleNamespace):
    """Stands for W&B's or trackio's module, and records how it is called."""

    def __init__(self):
        super().__init__(calls=[])

    def init(self, **options):
        self.calls.append(("init", options))

    def log(self, values, step):
        self.calls.append(("log", step, values))

    def finish(self):
        self.calls.append(("finish",))


@pytest.fixture(params=["wandb", "trackio"])
def tracker(request, monkeypatch):
    fake = FakeTracker()
    monkeypatch.setitem(sys.modules, request.param, fake)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return request.param, fake


def test_records_are_sent_with_their_step_and_without_what_is_unknown(tracker, tmp_path):
    name, fake = tracker
    with Tracking(name).sending(tmp_path / "run-1", ABOUT) as send:
        send({"step": 10, "loss": None, "return": 2.0})
        send({"step": 10, "bias/mean": 0.5})
    (_, options), *logged, last = fake.calls
    assert (options["project"], options["name"], options["group"]) == ("ebql", "run-1", "run-1")
    assert options["config"] == {"agent": "ebql", "environment": "Pole-v1", "options": {"seed": 0}}
    assert logged == [("log", 10, {"return": 2.0}), ("log", 10, {"bias/mean": 0.5})]
    assert last == ("finish",)


def test_a_run_that_fails_is_finished_and_one_that_never_began_leaves_no_trace(tracker, tmp_path):
    name, fake = tracker
    with pytest.raises(RuntimeError), Tracking(name).sending(tmp_path, {}):
        raise RuntimeError("refused")
    assert fake.calls == []
    with pytest.raises(KeyError), Tracking(name).sending(tmp_path, {}) as send:
        send({"a record": "without a step"})
    assert fake.calls[-1] == ("finish",)


def test_wandb_is_offline_unless_the_user_says_otherwise(tmp_path, monkeypatch):
    fake = FakeTracker()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    for setting, mode in ((None, "offline"), ("online", "online")):
        if setting is None:
            monkeypatch.delenv("WANDB_MODE", raising=False)
        else:
            monkeypatch.setenv("WANDB_MODE", setting)
        with Tracking("wandb").sending(tmp_path, {}) as send:
            send({"step": 1})
        assert [call[1]["mode"] for call in fake.calls if call[0] == "init"][-1] == mode


def test_project_name_and_group_are_the_users(tracker, tmp_path):
    name, fake = tracker
    for tracking, expected in [
        (Tracking(name, "mine", "first"), ("mine", "first", "first")),
        (Tracking(name, group="study"), ("ebql", "ebql-Pole-v1", "study")),
    ]:
        with tracking.sending(None, ABOUT) as send:
            send({"step": 1})
        options = next(call[1] for call in reversed(fake.calls) if call[0] == "init")
        assert (options["project"], options["name"], options["group"]) == expected
        assert "dir" not in options


def test_agents_send_every_record(tracker, small, tmp_path):
    name, fake = tracker
    agent = DQN("CartPole-v1", **small)
    agent.learn(200, out=tmp_path / "run", track=Tracking(name, "mine"))
    assert [call[1] for call in fake.calls if call[0] == "log"] == [100, 200]
    assert fake.calls[0][1]["project"] == "mine"
    assert fake.calls[-1] == ("finish",)
    fake.calls.clear()
    DQN.resume(tmp_path / "run", steps=300, track=name)
    assert [call[1] for call in fake.calls if call[0] == "log"] == [300]
    assert fake.calls[0][1]["name"] == "run"


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_missing_tracker_is_named_with_its_command(name, small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    agent = DQN("CartPole-v1", **small)
    with pytest.raises(InputError, match=f"pip install {name}"):
        agent.learn(100, out=tmp_path / "run", track=name)
    with pytest.raises(InputError, match="Unknown tracker 'mlflow'. Known: trackio, wandb."):
        agent.learn(100, out=tmp_path / "run", track="mlflow")
    assert not (tmp_path / "run").exists()


def test_wandb_itself_writes_a_run_offline(small, tmp_path, monkeypatch):
    """The real library, without a network: its own reader finds the metrics in the run's folder."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    DQN("CartPole-v1", **small).learn(200, out=tmp_path / "run", track=Tracking("wandb", "mine", "first"))
    wandb.teardown()
    (file,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    content = file.read_bytes()
    for word in (b"mine", b"first", b"loss"):
        assert word in content
