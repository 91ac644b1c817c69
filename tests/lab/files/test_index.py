import os
import shutil
import time

import pytest

from ebql.errors import InputError
from ebql.lab.files.index import Index
from ebql.runs import Attempts


def test_runs_are_found_below_the_folder_and_nowhere_else(tmp_path, write_log):
    write_log("lab/a", [])
    write_log("lab/deep/er/b", [], agent="ebql", options={"ensemble_size": 5})
    write_log("lab/.hidden/c", [])
    outside = write_log("outside", [])
    (tmp_path / "lab" / "link").symlink_to(outside, target_is_directory=True)
    (tmp_path / "lab" / "other").mkdir()
    (tmp_path / "lab" / "other" / "config.json").write_text('{"model": "not a run"}')
    index = Index(tmp_path / "lab")
    assert {name: run.label for name, run in index.runs.items()} == {"a": "DQN", "deep/er/b": "EBQL K=5"}
    assert index.refused == {}
    for name in ("../outside", "link", "/etc", "a/../../outside", ".hidden/c", ""):
        with pytest.raises(InputError, match="There is no run"):
            index.run(name)


def test_a_damaged_run_is_told_and_does_not_hide_the_others(tmp_path, write_log):
    write_log("a", [])
    broken = write_log("b", [])
    (broken / "config.json").write_text('{"format": "ebql run 1", "agent": 3}')
    index = Index(tmp_path)
    assert list(index.runs) == ["a"]
    assert "agent 3" in index.refused["b"]


def test_states_steps_and_speed(tmp_path, write_log):
    timing = [{"step": 10, "seconds": 9.0}, {"step": 20, "seconds": 5.0}]
    done = write_log("done", [{"step": 30}], timing)
    old = write_log("old", [{"step": 20, "loss": 1.0}], timing)
    live = write_log("live", [{"step": 20, "loss": 1.0}], timing)
    failed = write_log("failed", [])
    Attempts(failed).append("failed", reason="The loss is NaN.")
    for path in (done, old):
        for file in path.iterdir():
            os.utime(file, (1e9, 1e9))
    rows = {name: run.row() for name, run in Index(tmp_path).runs.items()}
    assert {name: row["state"] for name, row in rows.items()} == {
        "done": "done",
        "failed": "failed",
        "live": "running",
        "old": "stopped",
    }
    assert rows["failed"]["reason"] == "The loss is NaN."
    assert (rows["live"]["step"], rows["live"]["speed"], rows["live"]["left"]) == (20, 2.0, 5.0)
    assert rows["old"]["left"] is None
    with (live / "metrics.jsonl").open("a") as file:
        file.write('{"step": 30}\n')
    assert Index(tmp_path).runs["live"].row()["state"] == "done"


def test_a_run_that_changes_is_read_again(tmp_path, write_log, monkeypatch):
    monkeypatch.setattr("ebql.lab.files.index._SECONDS_BETWEEN_SCANS", 0.0)
    path = write_log("a", [{"step": 30}])
    index = Index(tmp_path)
    run = index.run("a")
    assert run.label == "DQN"
    assert index.run("a") is run
    shutil.rmtree(path)
    assert run.films() == []
    write_log("a", [{"step": 10}], agent="ebql", options={"ensemble_size": 5})
    os.utime(path / "config.json", (1e9, 1e9))
    assert index.run("a").label == "EBQL K=5"


def test_a_stopped_run_that_is_resumed_elsewhere_runs(tmp_path, write_log):
    path = write_log("a", [{"step": 20, "loss": 1.0}])
    Attempts(path).append("stopped", reason="Stopped at step 20.")
    assert Index(tmp_path).run("a").status()["state"] == "stopped"
    later = time.time() + 5
    os.utime(path / "metrics.jsonl", (later, later))
    assert Index(tmp_path).run("a").status()["state"] == "running"
    long_ago = time.time() - 1000
    os.utime(path / "metrics.jsonl", (long_ago, long_ago))
    os.utime(path / "attempts.jsonl", (long_ago - 5, long_ago - 5))
    status = Index(tmp_path).run("a").status()
    assert (status["state"], status["reason"]) == ("stopped", "Stopped at step 20.")


def test_links_are_no_films(tmp_path, write_log):
    run = write_log("a", [])
    (run / "watch.gif").write_bytes(b"GIF89a")
    (tmp_path / "secret.gif").write_bytes(b"GIF89a")
    (run / "secret.gif").symlink_to(tmp_path / "secret.gif")
    assert Index(tmp_path).runs["a"].films() == ["watch.gif"]


def test_of_folders_with_the_same_runs_the_outermost_is_a_study(tmp_path, write_log):
    for name in ("study/runs/a", "study/runs/b", "other/c", "other/d", "alone/e"):
        write_log(name, [])
    (tmp_path / "study" / "study.toml").write_text("")
    assert Index(tmp_path).studies == ["other", "study"]
