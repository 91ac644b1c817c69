"""Studies on a real Ray cluster of two nodes, which lose a worker and then a whole node."""

import ipaddress
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from ebql.errors import InputError
from ebql.runs import Attempts, RunFolder
from ebql.studies.definition import read_study
from ebql.studies.model import Resources
from ebql.studies.plan import plan, run_folder
from ebql.studies.ray_runner import (
    _check_answer,
    _check_loopback,
    _check_reachable,
    _keep_token_private,
    _probe,
    ray_runner,
)
from ebql.studies.runners import LocalRunner
from ebql.studies.status import statuses
from ebql.studies.sweep import sweep

# Ray opens sockets and processes that it leaves to the system, and warns of its own deprecations.
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]

STUDY = """
agents = ["dqn", "ebql"]
environments = ["CartPole-v1"]
seeds = 2
steps = 2_000
preset = "plain"
hidden = [16]
learning_starts = 100
log_period = 100
checkpoint_period = 100
evaluation = { period = 1_000, episodes = 2 }
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return read_study(path)


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80_000_000})
    yield made
    made.shutdown()


def test_a_cluster_for_the_occasion_stops_after_checkpoints(tmp_path, study):
    def interrupt_once_saved():
        saved = [folder for folder in (run_folder(tmp_path, run) for run in study.runs) if _steps(folder)]
        if saved and not interrupted:
            interrupted.append(saved[0])
            raise KeyboardInterrupt

    interrupted = []
    with pytest.raises(KeyboardInterrupt), ray_runner(None, 1, study.resources, tmp_path) as runner:
        sweep(study, plan(study, tmp_path), tmp_path, runner, interrupt_once_saved)
    last = Attempts(interrupted[0]).read()[-1]
    assert last["event"] in ("stopped", "done")
    if last["event"] == "stopped":
        assert last["reason"] == f"Stopped at step {_steps(interrupted[0])[-1]}."
    assert not list(tmp_path.glob(".probe*"))


@pytest.fixture
def sweep_of_a_user(study, tmp_path):
    """`ebql sweep --on ray` as a user without any setting of Ray starts it, in a home of its own."""
    code = "import sys; from ebql.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["sweep", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--on", "ray"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words, "--workers", "1"],
        env={**own, "HOME": str(tmp_path / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield process
    process.send_signal(signal.SIGINT)
    assert process.wait(120) in (0, 130)


@pytest.mark.skipif(sys.platform != "linux", reason="open sockets are found in /proc")
def test_a_local_cluster_listens_on_loopback_alone_and_keeps_its_token_private(
    sweep_of_a_user, study, tmp_path
):
    folders = [run_folder(tmp_path / "out", run) for run in study.runs]
    while not any(_steps(folder) for folder in folders):
        assert sweep_of_a_user.poll() is None
        time.sleep(0.1)
    sockets = _listening(_family(sweep_of_a_user.pid))
    assert {"gcs_server", "raylet"} <= {program for program, _ in sockets}
    assert len(sockets) >= 5  # and those of the driver and of the worker
    assert [(program, address) for program, address in sockets if not address.is_loopback] == []
    token = tmp_path / "home" / ".ray" / "auth_token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700


def _family(pid):
    """The process and all that it has started, by number."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    return [pid, *(member for child in children.get(pid, []) for member in _family(child))]


def _listening(pids):
    """The program and the address of each TCP socket that these processes listen on."""
    owners = {}
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                owners[os.readlink(link)] = Path(f"/proc/{pid}/comm").read_text().strip()
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in owners:  # 0A: it listens
                words = bytes.fromhex(local.partition(":")[0])
                packed = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
                address = ipaddress.ip_address(packed)
                found.append((owners[f"socket:[{inode}]"], getattr(address, "ipv4_mapped", None) or address))
    return found


def test_the_token_is_written_once_and_made_private(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    path = tmp_path / ".ray" / "auth_token"
    modes = []
    monkeypatch.setattr(Path, "chmod", lambda path, mode: modes.append((path.stat().st_mode & 0o777, mode)))
    _keep_token_private()
    token = path.read_text()
    assert len(bytes.fromhex(token)) == 32
    assert modes == [(0o600, 0o600)]  # private from the start
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    path.chmod(0o644)  # as Ray writes it
    _keep_token_private()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == token


def test_a_cluster_that_others_can_reach_is_refused():
    class Ray:
        down = False

        def get_runtime_context(self):
            return SimpleNamespace(gcs_address="10.0.0.7:6379")

        def shutdown(self):
            self.down = True

    ray = Ray()
    with pytest.raises(
        InputError, match=r"would listen on 10\.0\.0\.7:6379, where other machines can reach it"
    ):
        _check_loopback(ray)
    assert ray.down


def test_a_run_that_fits_no_machine_is_refused(tmp_path):
    huge = Resources(cpus=1, gpus=1_000, retries=0)
    told = "A run needs 1 CPUs and 1000 GPUs: no machine of the cluster has that many"
    with pytest.raises(InputError, match=told), ray_runner(None, 1, huge, tmp_path):
        pass


def test_a_machine_must_see_and_write_the_shared_path_and_have_the_same_versions(tmp_path):
    token = tmp_path / "token"
    token.write_text("")
    good = _probe(str(token), 0)
    _check_answer("10.0.0.7", tmp_path, good)
    for answer, told in (
        (_probe(str(tmp_path / "elsewhere"), 0), "10.0.0.7 does not see"),
        (
            _probe("/proc/version", 0),
            "10.0.0.7 cannot use the shared path. Cannot write to the folder '/proc'",
        ),
        ({**good, "versions": {**good["versions"], "torch": "1.0"}}, r"10.0.0.7 has torch 1.0, this one 2"),
        ({**good, "versions": {**good["versions"], "ebql": None}}, "10.0.0.7 has ebql None"),
    ):
        with pytest.raises(InputError, match=told) as refusal:
            _check_answer("10.0.0.7", tmp_path, answer)
        assert "\n" not in str(refusal.value)


def test_what_is_no_cluster_is_refused_in_time(monkeypatch):
    monkeypatch.setattr("ebql.studies.ray_runner._HEALTH_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(InputError, match=f"The server at 127.0.0.1:{port} is not a Ray cluster"):
            _check_reachable(f"127.0.0.1:{port}")
    with pytest.raises(InputError, match=f"No Ray cluster can be reached at 127.0.0.1:{port}"):
        _check_reachable(f"127.0.0.1:{port}")


def test_a_cluster_that_asks_for_a_token_says_so(cluster, monkeypatch):
    _check_reachable(cluster.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(InputError, match=r"requires a token: copy ~/\.ray/auth_token from its head"):
        _check_reachable(cluster.address)


def _steps(folder):
    config = folder / "config.json"
    return [step for step in RunFolder.open(folder).checkpoints.steps() if step] if config.exists() else []


class Saboteur:
    """Kills a worker of the head once it has saved a checkpoint, then removes the other node in mid-study."""

    def __init__(self, study, out, cluster, doomed):
        self.folders = [run_folder(out, run) for run in study.runs]
        self.cluster, self.doomed = cluster, doomed
        self.killed = self.removed = None

    def __call__(self):
        at_work = [(folder, events[-1]) for folder in self.folders if (events := Attempts(folder).read())]
        at_work = [(folder, start) for folder, start in at_work if start["event"] == "started"]
        there = [(folder, start) for folder, start in at_work if start["node"] == self.doomed.node_id]
        here = [(folder, start) for folder, start in at_work if start["node"] != self.doomed.node_id]
        if self.killed is None:
            for folder, start in here:
                if _steps(folder):
                    self.killed = folder.name
                    os.kill(start["pid"], signal.SIGKILL)
                    return
        elif self.removed is None and there and all(_steps(folder) for folder, _ in there):
            self.removed = [folder.name for folder, _ in there]
            self.cluster.remove_node(self.doomed, allow_graceful=False)


def test_a_study_survives_the_loss_of_a_worker_and_of_a_node(study, tmp_path, cluster):
    here, there = tmp_path / "local", tmp_path / "ray"
    sweep(study, plan(study, here), here, LocalRunner(2), lambda: None)
    saboteur = Saboteur(study, there, cluster, cluster.add_node(num_cpus=2, object_store_memory=80_000_000))
    with ray_runner(cluster.address, None, study.resources, there) as runner:
        sweep(study, plan(study, there), there, runner, saboteur)
    assert saboteur.killed
    assert saboteur.removed
    assert [status.state for status in statuses(study, there)] == ["done"] * 4
    for run in study.runs:
        ours, theirs = RunFolder.open(run_folder(here, run)), RunFolder.open(run_folder(there, run))
        assert theirs.metrics_path.read_bytes() == ours.metrics_path.read_bytes()
        one, other = ours.checkpoints.load_latest(), theirs.checkpoints.load_latest()
        assert one.step == other.step == 2_000
        for name, tensor in one.tensors.items():
            assert tensor.tobytes() == other.tensors[name].tobytes()
        _assert_trained_once(Attempts(theirs.path).read())
    retried = {run.name for run in study.runs if len(Attempts(run_folder(there, run)).read()) > 2}
    assert retried == {saboteur.killed, *saboteur.removed}


def _assert_trained_once(events):
    """Each attempt but the first went on from a checkpoint; one, the last, came to the end."""
    starts = [event["step"] for event in events if event["event"] == "started"]
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert all(step > 0 for step in starts[1:])
    assert [event["event"] for event in events].count("done") == 1
    assert events[-1]["event"] == "done"
