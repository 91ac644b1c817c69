import os
import time

import pytest

from ebql.errors import InputError
from ebql.runs import Attempts, DamagedLogWarning
from ebql.runs.metrics import last_records


def events(folder):
    return [event["event"] for event in Attempts(folder).read()]


def test_an_attempt_is_logged_from_its_start_to_its_end(tmp_path):
    attempts = Attempts(tmp_path / "run")
    assert attempts.read() == []
    assert attempts.silence() == float("inf")
    with attempts.attempt(300, {"node": "a"}):
        (started,) = attempts.read()
        assert (started["event"], started["step"], started["node"]) == ("started", 300, "a")
        assert started["pid"] == os.getpid()
        assert attempts.silence() < 60
    assert events(tmp_path / "run") == ["started", "done"]


def test_a_failure_leaves_its_reason_and_a_bug_its_traceback(tmp_path):
    attempts = Attempts(tmp_path)
    with pytest.raises(InputError), attempts.attempt(0, {}):
        raise InputError("Too\nsmall.")
    assert attempts.read()[-1]["reason"] == "Too small."
    assert not (tmp_path / "failure.txt").exists()
    with pytest.raises(ZeroDivisionError), attempts.attempt(0, {}):
        1 / 0  # noqa: B018
    assert attempts.read()[-1]["reason"] == "ZeroDivisionError: division by zero"
    assert "Traceback" in (tmp_path / "failure.txt").read_text()


@pytest.mark.parametrize(
    ("told", "reason"),
    [("Stopped at step 7; go on: ebql resume x", "Stopped at step 7."), ("", "Stopped before it began.")],
)
def test_an_interrupt_is_no_failure(tmp_path, told, reason):
    with pytest.raises(KeyboardInterrupt), Attempts(tmp_path).attempt(0, {}):
        raise KeyboardInterrupt(told)
    last = Attempts(tmp_path).read()[-1]
    assert (last["event"], last["reason"]) == ("stopped", reason)


def test_only_an_attempt_that_could_not_end_itself_is_ended_for_it(tmp_path):
    attempts = Attempts(tmp_path)
    attempts.append("started", step=0)
    attempts.close_after_death("failed", "killed")
    attempts.close_after_death("failed", "killed again")
    assert [event.get("reason") for event in attempts.read()] == [None, "killed"]


def test_the_heartbeat_renews_the_file_while_the_attempt_lasts(tmp_path, monkeypatch):
    monkeypatch.setattr("ebql.runs.attempts.HEARTBEAT_SECONDS", 0.01)
    attempts = Attempts(tmp_path)
    with attempts.attempt(0, {}):
        os.utime(attempts.path, (0, 0))
        until = time.monotonic() + 30
        while attempts.silence() > 1000 and time.monotonic() < until:
            time.sleep(0.01)
        assert attempts.silence() < 1000


@pytest.mark.parametrize("size", [1, 12, 13, 25, 26, 1000])
def test_the_last_records_are_whole_ones(tmp_path, size):
    log = tmp_path / "log"
    log.write_bytes(b'{"step": 10}\n{"step": 20}\n{"step"')
    steps = [record["step"] for record in last_records(log, size)]
    assert steps == {1: [], 12: [], 13: [], 25: [20], 26: [20], 1000: [10, 20]}[size]
    assert last_records(tmp_path / "none") == []


def test_half_a_line_is_cut_off_before_the_next(tmp_path):
    attempts = Attempts(tmp_path)
    attempts.append("started")
    with attempts.path.open("ab") as file:
        file.write(b'{"event": "do')
    attempts.append("failed", reason="x")
    assert [event["event"] for event in attempts.read()] == ["started", "failed"]


ODD_EVENTS = [
    '{"event": "failed"}',
    '{"event": "stopped", "reason": 3}',
    '{"event": "gone"}',
    '{"time": 1}',
    "[]",
    "{",
]


@pytest.mark.parametrize("line", ODD_EVENTS)
def test_an_event_that_is_not_understood_is_told_once_and_left_out(tmp_path, line):
    attempts = Attempts(tmp_path)
    attempts.append("started", step=0, host="a")
    with attempts.path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.warns(DamagedLogWarning, match=r"attempts.jsonl' is damaged: 1 line cannot be understood"):
        assert [event["event"] for event in attempts.read()] == ["started"]
    with pytest.warns(DamagedLogWarning):
        attempts.close_after_death("failed", "killed")
    with pytest.warns(DamagedLogWarning):
        assert attempts.read()[-1]["reason"] == "killed"
