"""Studies in processes of this machine: they fail alone, stop with checkpoints and leave no orphans."""

import os
import signal
import subprocess
import sys
import time

import pytest

from ebql.deep.agent import DQN
from ebql.errors import InputError
from ebql.runs import Attempts, RunFolder, exclusive
from ebql.studies.plan import plan, run_folder
from ebql.studies.runners import LocalRunner, cores, local_runner
from ebql.studies.status import statuses
from ebql.studies.sweep import sweep

ENDLESS = 'agents = ["dqn"]\nseeds = 2\nsteps = 100_000_000\n'
WAIT = 120


def _sweep(study, out, tick=lambda: None):
    sweep(study, plan(study, out), out, LocalRunner(2), tick)


def _saved(study, out):
    """Return the newest checkpoint of each run that has begun."""
    folders = [run_folder(out, run) for run in study.runs]
    begun = [RunFolder.open(folder) for folder in folders if (folder / "config.json").exists()]
    return [max(folder.checkpoints.steps(), default=0) for folder in begun]


def test_a_failing_run_stops_no_other_and_all_end_as_if_trained_alone(small_study, tmp_path):
    broken = '[[agent]]\nname = "double-dqn"\nlabel = "broken"\nlearning_rate = 1e38\nmax_grad_norm = 1e38\n'
    study = small_study('agents = ["dqn"]\nseeds = 1\nsteps = 200\nloss = "mse"\n', broken)
    out = tmp_path / "out"
    _sweep(study, out)
    good, bad = statuses(study, out)
    assert (good.state, bad.state) == ("done", "failed")
    assert "loss" in bad.reason
    assert (out / "study.toml").read_text() == study.text

    run = good.run
    DQN(run.environment, preset=run.preset, **run.options).learn(200, out=tmp_path / "alone")
    swept, alone = RunFolder.open(run_folder(out, run)), RunFolder.open(tmp_path / "alone")
    assert swept.metrics_path.read_bytes() == alone.metrics_path.read_bytes()
    one, other = swept.checkpoints.load_latest(), alone.checkpoints.load_latest()
    assert all(tensor.tobytes() == other.tensors[name].tobytes() for name, tensor in one.tensors.items())

    _sweep(study, out)  # tries the failed one again, and only that
    assert [len(Attempts(run_folder(out, run)).read()) for run in study.runs] == [2, 4]


class Impatient:
    """Kills the first worker once both have saved a checkpoint, and then presses Ctrl-C so many times."""

    def __init__(self, study, out, presses):
        self.study, self.out, self.presses = study, out, presses
        self.killed = None

    def __call__(self):
        events = [Attempts(run_folder(self.out, run)).read() for run in self.study.runs]
        saved = _saved(self.study, self.out)
        if self.killed is None and len(saved) == 2 and min(saved) > 0:
            self.killed = events[0][0]["pid"]
            os.kill(self.killed, signal.SIGKILL)
        elif events[0][1:] and self.presses:
            self.presses -= 1
            raise KeyboardInterrupt


def test_ctrl_c_leaves_checkpoints_and_a_killed_worker_its_reason(small_study, tmp_path):
    study = small_study(ENDLESS)
    with pytest.raises(KeyboardInterrupt):
        _sweep(study, tmp_path, Impatient(study, tmp_path, presses=1))
    first, second = statuses(study, tmp_path)
    assert first.state == "failed"
    assert first.reason == "Its process was ended by SIGKILL, perhaps for lack of memory."
    assert second.state == "stopped"
    assert second.reason == f"Stopped at step {second.step}."
    assert second.step == _saved(study, tmp_path)[1] > 0


def test_an_error_of_the_sweep_itself_leaves_checkpoints_too(small_study, tmp_path):
    study = small_study(ENDLESS)

    def look():
        if min(_saved(study, tmp_path), default=0) > 0:
            raise OSError("the network's file system is gone")

    with pytest.raises(OSError, match="is gone"):
        _sweep(study, tmp_path, look)
    for status, saved in zip(statuses(study, tmp_path), _saved(study, tmp_path), strict=True):
        assert (status.state, status.reason) == ("stopped", f"Stopped at step {status.step}.")
        assert status.step == saved > 0


def test_a_second_ctrl_c_ends_the_workers_at_once(small_study, tmp_path):
    study = small_study(ENDLESS)
    with pytest.raises(KeyboardInterrupt):
        _sweep(study, tmp_path, Impatient(study, tmp_path, presses=2))
    assert statuses(study, tmp_path)[1].state == "stopped"
    assert not _alive(Attempts(run_folder(tmp_path, study.runs[1])).read()[0]["pid"])
    assert min(_saved(study, tmp_path)) > 0


def test_no_worker_outlives_a_sweep_that_was_killed(small_study, tmp_path):
    study = small_study(ENDLESS)
    words = ["sweep", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    script = f"import sys\nfrom ebql.cli import main\nmain({words!r})"
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as parent:
        try:
            attempts = Attempts(run_folder(tmp_path / "out", study.runs[0]))
            _wait_for(lambda: max(_saved(study, tmp_path / "out"), default=0) > 0)
            lock = tmp_path / "out" / ".lock"
            with pytest.raises(InputError, match="at work"), exclusive(lock, "at work"):
                pass
        finally:
            parent.kill()
    _wait_for(lambda: attempts.read()[-1]["event"] == "stopped")
    _wait_for(lambda: not _alive(attempts.read()[0]["pid"]))


def _wait_for(condition):
    until = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_sweeps_in_one_folder_are_refused(small_study, tmp_path):
    study = small_study(ENDLESS)
    with exclusive(tmp_path / ".lock", ""), pytest.raises(InputError, match="Another sweep is running"):
        _sweep(study, tmp_path)
    assert not (tmp_path / "runs").exists()


def test_as_many_workers_as_fit_the_machine():
    assert local_runner(None, 1).workers == cores()
    assert local_runner(None, 10_000).workers == 1
    assert local_runner(7, 10_000).workers == 7
    with pytest.raises(InputError, match="workers must be at least 1"):
        local_runner(0, 1)
