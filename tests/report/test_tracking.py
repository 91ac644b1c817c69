import sys
from types import SimpleNamespace

import pytest

from ebql.errors import InputError
from ebql.report.tracking import tracked


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
    with tracked(name, tmp_path / "run-1", {"agent": "ebql"}) as send:
        send({"step": 10, "loss": None, "return": 2.0})
        send({"step": 10, "bias/mean": 0.5})
    (_, options), *logged, last = fake.calls
    assert options["project"] == "ebql"
    assert options["name"] == "run-1"
    assert options["config"] == {"agent": "ebql"}
    assert logged == [("log", 10, {"return": 2.0}), ("log", 10, {"bias/mean": 0.5})]
    assert last == ("finish",)


def test_a_run_that_fails_is_finished_and_one_that_never_began_leaves_no_trace(tracker, tmp_path):
    name, fake = tracker
    with pytest.raises(RuntimeError), tracked(name, tmp_path, {}):
        raise RuntimeError("refused")
    assert fake.calls == []
    with pytest.raises(KeyError), tracked(name, tmp_path, {}) as send:
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
        with tracked("wandb", tmp_path, {}) as send:
            send({"step": 1})
        assert [call[1]["mode"] for call in fake.calls if call[0] == "init"][-1] == mode


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_missing_tracker_is_named_with_its_command(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=f"pip install {name}"), tracked(name, tmp_path, {}):
        pass


def test_without_a_tracker_records_go_nowhere(tmp_path):
    with tracked(None, tmp_path, {}) as send:
        send({"step": 1})
