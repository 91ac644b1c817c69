import os
import time

import pytest

from ebql.errors import InputError
from ebql.runs import Attempts, RunFolder
from ebql.studies.definition import read_study
from ebql.studies.plan import run_folder
from ebql.studies.status import seconds_left, speed_of, statuses, study_in

HEAD = 'agents = ["dqn"]\nseeds = 1\nsteps = 1_000\n'


@pytest.fixture
def study(small_study):
    return small_study(HEAD)


@pytest.fixture
def folder(study, tmp_path):
    return run_folder(tmp_path, study.runs[0])


def _begun(folder, study, saved, measured):
    """Leave what a run leaves: a checkpoint, and records of 100 steps in two seconds each."""
    run = study.runs[0]
    about = {"agent": run.agent, "environment": run.environment, "options": run.options, "steps": 1_000}
    made = RunFolder.create(folder, about, command=[])
    made.checkpoints.save(saved, {}, {}, {})
    with made.metrics(0) as log:
        for step in range(100, measured + 1, 100):
            log.append({"step": step})
    lines = [f'{{"step": {step}, "seconds": 2.0}}\n' for step in range(100, measured + 1, 100)]
    (folder / "timing.jsonl").write_text("".join(lines))


def _status(study, tmp_path):
    (status,) = statuses(study, tmp_path)
    return status


def test_a_run_from_its_queue_to_its_end(study, folder, tmp_path):
    assert _status(study, tmp_path).state == "queued"
    attempts = Attempts(folder)
    attempts.append("started", step=0, host="here", pid=1)
    assert _status(study, tmp_path).state == "running"
    _begun(folder, study, saved=250, measured=500)
    status = _status(study, tmp_path)
    assert (status.state, status.step, status.speed, status.seconds_left) == ("running", 500, 50, 10)
    os.utime(attempts.path, (0, 0))
    status = _status(study, tmp_path)
    assert status.state == "stopped"
    assert status.reason.startswith("No heartbeat from here for")
    attempts.append("failed", reason="The loss is not a number.")
    status = _status(study, tmp_path)
    assert (status.state, status.reason) == ("failed", "The loss is not a number.")
    attempts.append("started", step=250, host="there", pid=2)
    assert _status(study, tmp_path).state == "running"
    attempts.append("stopped", reason="Stopped at step 600.")
    assert _status(study, tmp_path).reason == "Stopped at step 600."
    RunFolder.open(folder).checkpoints.save(1_000, {}, {}, {})
    status = _status(study, tmp_path)
    assert (status.state, status.step, status.reason) == ("done", 1_000, None)


def test_a_finished_run_whose_study_grows_waits_again(study, small_study, folder, tmp_path):
    _begun(folder, study, saved=1_000, measured=1_000)
    Attempts(folder).append("started", step=0, host="here", pid=1)
    Attempts(folder).append("done")
    assert _status(study, tmp_path).state == "done"
    status = _status(small_study(HEAD.replace("1_000", "2_000")), tmp_path)
    assert (status.state, status.step) == ("queued", 1_000)


def test_what_ebql_train_left_unfinished_is_stopped(study, folder, tmp_path):
    _begun(folder, study, saved=500, measured=500)
    assert _status(study, tmp_path).state == "stopped"


def test_the_speed_counts_evaluations_and_repeated_steps():
    clock = [(100, 9.0), (200, 2.0), (200, 3.0), (150, 1.0), (200, 1.0), (300, 3.0)]
    records = [{"step": step, "seconds": seconds} for step, seconds in clock]
    assert speed_of(records) == (100 + 50 + 100) / 10
    assert speed_of(records[:1]) is None
    assert speed_of([]) is None


def test_the_time_left_is_that_of_all_work_over_those_at_work(study, folder, tmp_path):
    _begun(folder, study, saved=250, measured=500)
    Attempts(folder).append("started", step=0, host="here", pid=1)
    running = _status(study, tmp_path)
    queued = running._replace(state="queued", step=0, speed=None)
    done = running._replace(state="done", step=1_000)
    assert seconds_left([running, queued, done]) == (500 + 1_000) / 50
    assert seconds_left([running, running, queued]) == (500 + 500 + 1_000) / 50 / 2
    assert seconds_left([queued]) is None
    # Without a speed of its own, a run takes the mean time a step: (1/50 + 1/150) / 2 seconds.
    fast = done._replace(speed=150.0)
    assert seconds_left([done, fast, queued], workers=1) == pytest.approx(1_000 * (1 / 50 + 1 / 150) / 2)


def test_a_folder_without_a_study_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no study in"):
        study_in(tmp_path / "nowhere")


def test_a_status_needs_no_environment(tmp_path):
    text = 'agents = ["dqn"]\nenvironments = ["Elsewhere/Only-v3"]\nseeds = 1\nsteps = 10\n'
    (tmp_path / "study.toml").write_text(text)
    (status,) = statuses(study_in(tmp_path), tmp_path)
    assert (status.state, status.run.name) == ("queued", "Elsewhere-Only-v3_dqn_0")
    with pytest.raises(InputError, match="Unknown environment"):
        read_study(tmp_path / "study.toml")


@pytest.mark.parametrize(("ahead", "state"), [(30, "running"), (10_000, "stopped")])
def test_a_heartbeat_far_in_the_future_is_no_sign_of_life(small_study, tmp_path, ahead, state):
    study = small_study('agents = ["dqn"]\nseeds = 1\nsteps = 200\n')
    attempts = Attempts(run_folder(tmp_path, study.runs[0]))
    attempts.append("started", step=0, host="a")
    os.utime(attempts.path, (time.time() + ahead,) * 2)
    (found,) = statuses(study, tmp_path)
    assert found.state == state
    assert state == "running" or "s in the future: compare the clocks" in found.reason
