"""Studies on a real Ray cluster of two nodes, which lose a worker and then a whole node."""

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from ebql.experiments.plans import plan, run_folder
from ebql.experiments.ray_runner import ray_runner
from ebql.experiments.runners import LocalRunner
from ebql.experiments.statuses import statuses
from ebql.experiments.studies import Resources, read_study
from ebql.experiments.sweeps import sweep
from ebql.runs import Attempts, RunFolder

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
NO_RESOURCES = Resources(cpus=1, gpus=0, retries=0)


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return read_study(path)


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80_000_000})
    yield made
    made.shutdown()


class Saboteur:
    """Kills a worker once it has saved a checkpoint, then removes the node that another run is on."""

    def __init__(self, study, out, cluster, doomed):
        self.folders = [run_folder(out, run) for run in study.runs]
        self.cluster, self.doomed = cluster, doomed
        self.killed = None
        self.removed = False

    def __call__(self):
        for folder in self.folders:
            events = Attempts(folder).read()
            if not events or events[-1]["event"] != "started":
                continue
            steps = RunFolder.open(folder).checkpoints.steps() if (folder / "config.json").exists() else []
            if not steps or steps[-1] <= events[-1]["step"]:
                continue
            start = events[-1]
            if self.killed is None:
                self.killed = start["pid"]
                os.kill(start["pid"], signal.SIGKILL)
            elif not self.removed and start["node"] == self.doomed.node_id and start["pid"] != self.killed:
                self.removed = True
                self.cluster.remove_node(self.doomed, allow_graceful=False)


def test_a_study_survives_the_loss_of_a_worker_and_of_a_node(study, tmp_path, cluster):
    here, there = tmp_path / "local", tmp_path / "ray"
    sweep(study, plan(study, here), here, LocalRunner(2), lambda: None)
    saboteur = Saboteur(study, there, cluster, cluster.add_node(num_cpus=2, object_store_memory=80_000_000))
    with ray_runner(cluster.address, None, study.resources, there) as runner:
        sweep(study, plan(study, there), there, runner, saboteur)
    assert saboteur.killed is not None
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
    retried = [run for run in study.runs if len(Attempts(run_folder(there, run)).read()) > 2]
    assert len(retried) >= 2


def _assert_trained_once(events):
    """Each attempt but the first went on from a checkpoint, further than the one before; one came to the end."""
    starts = [event["step"] for event in events if event["event"] == "started"]
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert all(step > 0 for step in starts[1:])
    assert [event["event"] for event in events].count("done") == 1
    assert events[-1]["event"] == "done"
