"""The lines about a run in progress: what they show of each record."""

import pytest

from ebql.terminal.progress import progress

TRAINING = {"return": 20.0, "loss": 0.5, "epsilon": 0.25}


@pytest.fixture
def shown(capsys, tmp_path):
    """Show records of a run; return the lines that were told."""

    def show_all(*records):
        with progress("dqn on W-v0", 100, tmp_path, str) as shown:
            for record in records:
                shown.record(record)
        return capsys.readouterr().err.splitlines()

    return show_all


def evaluation(bias):
    return {"evaluation/return": 12.5, "bias/mean": bias}


def test_a_bias_that_is_unknown_now_hides_the_one_before(shown):
    first, second, done = shown(
        {"step": 50, **TRAINING},
        {"step": 50, **evaluation(3.0)},
        {"step": 100, **TRAINING},
        {"step": 100, **evaluation(None)},
    )
    assert "bias +3.00" in first
    for line in (second, done):
        assert "bias n/a" in line
        assert "3.00" not in line


def test_a_finished_run_that_is_resumed_says_that_nothing_is_left(shown, tmp_path):
    assert shown() == [
        f"nothing to do: dqn on W-v0 has its 100 steps; train further with --steps N  → {tmp_path}"
    ]


def test_a_record_of_the_other_kind_says_nothing_of_the_bias(shown):
    first, done = shown({"step": 50, **evaluation(3.0)}, {"step": 100, **TRAINING})
    assert "bias +3.00" in first
    assert "bias +3.00" in done
    assert "return 20.0" in done


def test_a_loss_that_is_unknown_now_hides_the_one_before(shown):
    (done,) = shown({"step": 50, **TRAINING}, {"step": 100, **TRAINING, "loss": None})
    assert "loss n/a" in done
    assert "return 20.0" in done


def test_a_run_is_introduced_at_its_first_heartbeat_and_not_before(capsys, tmp_path):
    with progress("dqn on W-v0", 100, tmp_path, "from step {} on".format) as shown:
        assert capsys.readouterr().err == ""
        shown.heartbeat(7)
        assert capsys.readouterr().err == "from step 7 on\n"
        shown.heartbeat(8)
        assert capsys.readouterr().err == ""


def test_in_a_terminal_steps_move_before_the_first_record(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes a terminal of what the tests capture
    with progress("dqn on W-v0", 20_000, tmp_path, str) as shown:
        shown.heartbeat(0)
        shown.heartbeat(1234)
    told = capsys.readouterr().err
    assert "starting dqn on W-v0" in told
    assert "1,234/20k" in told


def test_a_narrow_terminal_cuts_metrics_and_not_steps(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    with progress("dqn on W-v0", 20_000_000, tmp_path, str) as shown:
        shown.heartbeat(12_000_000)
        shown.record({"step": 12_345_678, **TRAINING, **evaluation(3.0)})
    live = capsys.readouterr().err.rpartition("stopped:")[0]
    assert "12,345,678/20M" in live
    assert "bias" not in live
