import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ebql.deep.training.tracking import Tracking
from ebql.runs import Attempts, RunFolder
from ebql.studies.plan import run_folder
from ebql.studies.tasks import Task, perform, progress


@pytest.fixture
def task(small_study, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", list(sys.argv))  # `perform` sets it
    run = small_study("seeds = [3]\nsteps = 60\n", '[[agent]]\nname = "dqn"\nlabel = "Mine"\n').runs[0]
    return Task(run, str(run_folder(tmp_path, run)), 1, ("ebql", "sweep", "study.toml"))


def test_a_task_survives_json(task):
    for own in (task, replace(task, tracking=Tracking("wandb", "mine", group="study"))):
        assert Task.from_json(json.loads(json.dumps(own.to_json()))) == own


def test_the_metrics_of_a_run_go_to_a_tracker_in_the_studys_group(task, monkeypatch):
    calls = []
    tracker = SimpleNamespace(
        init=lambda **options: calls.append((options["project"], options["name"], options["group"])),
        log=lambda _, step: calls.append(step),
        finish=lambda: calls.append("finished"),
    )
    monkeypatch.setitem(sys.modules, "trackio", tracker)
    perform(replace(task, tracking=Tracking("trackio", "mine", group="study")))
    assert calls[0] == ("mine", Path(task.folder).name, "study")
    assert calls[-2:] == [60, "finished"]


def test_a_performed_run_says_what_it_is(task):
    assert progress(task.run, task.folder) == 0
    perform(task, node="n7")
    config = RunFolder.open(task.folder).config
    assert (config["kind"], config["label"], config["agent"]) == ("deep", "Mine", "dqn")
    assert config["command"] == "ebql sweep study.toml"
    assert progress(task.run, task.folder) == 60
    started, done = Attempts(task.folder).read()
    assert (started["step"], started["node"], done["event"]) == (0, "n7", "done")


def test_a_finished_run_is_not_performed_again(task):
    perform(task)
    perform(task)
    assert len(Attempts(task.folder).read()) == 2
