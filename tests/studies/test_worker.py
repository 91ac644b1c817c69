import json
import subprocess
import sys

from ebql.runs import RunFolder
from ebql.studies.plan import run_folder
from ebql.studies.tasks import Task

COMMAND = [sys.executable, "-m", "ebql.studies.worker"]


def _task(small_study, tmp_path, **changes):
    run = small_study("seeds = [0]\nsteps = 60\n", '[[agent]]\nname = "dqn"\nlabel = "Mine"\n').runs[0]
    content = Task(run, str(run_folder(tmp_path, run)), 1, ("ebql", "sweep")).to_json()
    return {**content, "run": {**content["run"], **changes}}


def _worked(content):
    """Send a line to a worker and wait for it with the pipe open, as a sweep does."""
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        worker.stdin.write(json.dumps(content) + "\n")
        worker.stdin.flush()
        return worker.wait(), worker.stderr.read()


def test_a_worker_performs_the_task_on_its_standard_input(small_study, tmp_path):
    content = _task(small_study, tmp_path)
    assert _worked(content)[0] == 0
    assert RunFolder.open(content["folder"]).checkpoints.steps()[-1] == 60


def test_bad_input_is_one_line_and_exit_code_2(small_study, tmp_path):
    code, output = _worked(_task(small_study, tmp_path, environment="Nothing-v0"))
    assert code == 2
    assert "Unknown environment 'Nothing-v0'" in output
    assert output.count("\n") == 1


def test_a_worker_without_a_task_ends(tmp_path):
    assert subprocess.run(COMMAND, stdin=subprocess.DEVNULL, check=False).returncode == 130
