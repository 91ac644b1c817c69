"""Runs on a Ray cluster: a task a run, whose folder lies on a path that all machines share.

Nothing but the task's plain description travels. A worker or a machine that dies has its runs started
again elsewhere, each from its last checkpoint.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from ebql.errors import InputError
from ebql.runs import Attempts, output_folder, versions, write_text
from ebql.runs.attempts import one_line
from ebql.studies.definition import Resources
from ebql.studies.runners import Tick
from ebql.studies.tasks import Task, perform

_CONNECT_SECONDS = 5.0
_HEALTH_SECONDS = 30.0
_PROBE_SECONDS = 120.0
_BETWEEN_LOOKS = 0.3
_SEEN_SECONDS = 40.0  # NFS may show a folder as it was half a minute ago
# What must be the same everywhere, or a run's bits would depend on the machine that it landed on.
_SAME = ("ebql", "python", "numpy", "torch", "gymnasium")


@dataclass(frozen=True)
class RayRunner:
    """A Ray cluster that this process has joined."""

    resources: Resources

    def run(self, tasks: Sequence[Task], tick: Tick) -> None:
        """Perform every task; Ray decides where, and starts again those whose worker or machine died."""
        ray = _ray()
        # max_calls: a process of its own for each run, as on one machine; what it held is given back.
        remote = ray.remote(max_calls=1)(_perform).options(
            num_cpus=self.resources.cpus, num_gpus=self.resources.gpus, max_retries=self.resources.retries
        )
        pending = {remote.remote(task.to_json()): task for task in tasks}
        try:
            while pending:
                for done in ray.wait(list(pending), timeout=_BETWEEN_LOOKS)[0]:
                    _note_death(done, pending.pop(done))
                tick()
        except KeyboardInterrupt:
            for reference in pending:  # those at work hear a Ctrl-C, save a checkpoint and end
                ray.cancel(reference, force=False)
            while pending:
                for done in ray.wait(list(pending), timeout=_BETWEEN_LOOKS)[0]:
                    pending.pop(done)
                tick()
            raise
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)


@contextmanager
def ray_runner(
    address: str | None, workers: int | None, resources: Resources, out: str | Path
) -> Iterator[RayRunner]:
    """Join the cluster at `address`, or start one on this machine, and leave it in the end.

    Before anything runs, every machine must see and write the folder `out`, and have the same versions.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray would empty CUDA_VISIBLE_DEVICES of tasks without a GPU, and warns that it will stop doing so.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray = _ray()
    _join(ray, address, workers)
    try:
        _check_capacity(ray, resources)
        _check_nodes(ray, output_folder(out).resolve())
        yield RayRunner(resources)
    finally:
        ray.shutdown()


def _perform(content: dict[str, Any]) -> None:
    node = _ray().get_runtime_context().get_node_id()
    perform(Task.from_json(content), node=node)


def _note_death(reference: Any, task: Task) -> None:
    """Write down why a task failed, if its process could not."""
    ray = _ray()
    try:
        ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # of the run's own; its log has it, if it had begun
        Attempts(task.folder).close_after_death("failed", one_line(error.cause))
    except ray.exceptions.RayError as error:
        first = str(error).strip().splitlines()[0]
        Attempts(task.folder).close_after_death("failed", f"{type(error).__name__}: {first}")


def _join(ray: Any, address: str | None, workers: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    if address is None:
        ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        return
    if workers is not None:
        raise InputError("workers is for this machine: a cluster runs as many as its CPUs hold.")
    if address != "auto":
        _check_reachable(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"Cannot join the Ray cluster at {address!r}: {first}") from error


def _check_reachable(address: str) -> None:
    """Refuse an address where no cluster answers; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if "/" in host or not host or not port.isdigit():
        raise InputError(
            f"A cluster's address is HOST:PORT of its head, such as 10.0.0.1:6379, or auto; not {address!r}."
        )
    advice = "is its head running (ray start --head), and the port open?"
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"No Ray cluster can be reached at {address}: {why}; {advice}") from error
    check = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        checked = subprocess.run(check, capture_output=True, timeout=_HEALTH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"What answers at {address} is not a Ray cluster: {advice}") from None
    if b"AuthenticationError" in checked.stderr:
        raise InputError(
            f"The Ray cluster at {address} asks for its token: copy ~/.ray/auth_token from its head, "
            "and export RAY_AUTH_MODE=token."
        )
    if checked.returncode:
        last = checked.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise InputError(f"The Ray cluster at {address} is not well: {''.join(last) or advice}")


def _check_capacity(ray: Any, resources: Resources) -> None:
    """Refuse a run that no machine of the cluster has room for: it would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(
        node.get("CPU", 0) >= resources.cpus and node.get("GPU", 0) >= resources.gpus for node in nodes
    ):
        raise InputError(
            f"No machine of the cluster has the {resources.cpus} CPUs and {resources.gpus:g} GPUs of a run."
        )


def _check_nodes(ray: Any, folder: Path) -> None:
    """Let every machine of the cluster look for a file of ours in `folder`, and try to write there."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    token = write_text(folder / f".probe-{uuid4().hex}", "")
    try:
        probe = ray.remote(num_cpus=0, max_retries=0)(_probe)
        asked = []
        for node in ray.nodes():
            if node["Alive"]:
                place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                answer = probe.options(scheduling_strategy=place).remote(str(token), _SEEN_SECONDS)
                asked.append((node["NodeManagerAddress"], answer))
        for machine, answer in asked:
            _judge(machine, folder, _answer(ray, machine, answer))
    finally:
        token.unlink(missing_ok=True)


def _probe(token: str, patience: float) -> dict[str, Any]:
    """On a machine of the cluster: say whether it sees the file, what keeps it from writing, its versions."""
    until = time.monotonic() + patience
    while not (seen := Path(token).exists()) and time.monotonic() < until:
        time.sleep(0.5)
    error = None
    try:
        if seen:
            output_folder(Path(token).parent)
    except OSError as failure:
        error = str(failure)
    return {"seen": seen, "error": error, "versions": versions()}


def _answer(ray: Any, machine: str, reference: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = ray.get(reference, timeout=_PROBE_SECONDS)
        return answer
    except ray.exceptions.GetTimeoutError:
        raise InputError(
            f"The machine {machine} of the cluster did not answer in {_PROBE_SECONDS:.0f} s."
        ) from None
    except ray.exceptions.RayError as error:
        last = str(error).strip().splitlines()[-1]
        raise InputError(f"The machine {machine} of the cluster cannot run ebql: {last}") from error


def _judge(machine: str, folder: Path, answer: dict[str, Any]) -> None:
    if not answer["seen"]:
        raise InputError(
            f"The machine {machine} does not see {str(folder)!r}: --out must be a path that all share."
        )
    if answer["error"] is not None:
        raise InputError(f"The machine {machine} cannot use the shared path. {answer['error']}")
    here = versions()
    for package in _SAME:
        there = answer["versions"].get(package)
        if there != here.get(package):
            raise InputError(
                f"The machine {machine} has {package} {there}, this one {here.get(package)}: "
                "install the same everywhere, or results would depend on the machine."
            )


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError('Clusters need Ray: pip install "ebql[ray]"') from error
    return ray
