"""Perform runs on a Ray cluster: one Ray task per run, with run folders on a path that all machines share.

Only the description of a task is sent over the network. If a worker or a machine dies, Ray restarts its runs
elsewhere, each from its last checkpoint.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import Any
from uuid import uuid4

from ebql.errors import InputError
from ebql.runs import Attempts, output_folder, versions, write_text
from ebql.runs.attempts import one_line
from ebql.studies.model import Resources
from ebql.studies.runners import Tick
from ebql.studies.tasks import Task, perform

_CONNECT_SECONDS = 5.0
_HEALTH_SECONDS = 30.0
_PROBE_SECONDS = 120.0
_POLL_SECONDS = 0.3
_PRIVATE = 0o600
_TOKEN_BYTES = 32
_SEVERAL_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # read when Ray is imported, on Linux as well
_VISIBLE_SECONDS = 40.0  # NFS clients may cache a folder for half a minute
# The versions that must agree, or results would depend on the machine that a run landed on.
_SAME_VERSIONS = ("ebql", "python", "numpy", "torch", "gymnasium")


@dataclass(frozen=True)
class RayRunner:
    """A Ray cluster that this process has joined."""

    resources: Resources

    def run(self, tasks: Sequence[Task], tick: Tick) -> None:
        """Perform every task; Ray chooses the machines and restarts tasks whose worker or machine died."""
        ray = _ray()
        # max_calls=1 gives each run its own process, as on one machine, and frees its memory afterwards.
        remote = ray.remote(max_calls=1)(_perform).options(
            num_cpus=self.resources.cpus, num_gpus=self.resources.gpus, max_retries=self.resources.retries
        )
        pending = {remote.remote(task.to_json()): task for task in tasks}
        try:
            while pending:
                for done in ray.wait(list(pending), timeout=_POLL_SECONDS)[0]:
                    _log_failure(done, pending.pop(done))
                tick()
        except KeyboardInterrupt:
            for reference in pending:  # running tasks get a KeyboardInterrupt and save a checkpoint
                ray.cancel(reference, force=False)
            while pending:
                for done in ray.wait(list(pending), timeout=_POLL_SECONDS)[0]:
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
    """Join the cluster at `address`, or start one on this machine; leave it on exit.

    Every machine must be able to write to the folder `out` and must have the same versions installed; this
    is checked before any run starts.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # By default Ray clears CUDA_VISIBLE_DEVICES in tasks without a GPU, and warns that this will change.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None:
        # Ray then takes 127.0.0.1 for this machine's address, and all its servers listen there alone.
        os.environ[_SEVERAL_MACHINES] = "0"
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


def _log_failure(reference: Any, task: Task) -> None:
    """Log why a task failed, unless its own process has done so."""
    ray = _ray()
    try:
        ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # raised by the run, which has logged it if it had started
        Attempts(task.folder).close_after_death("failed", one_line(error.cause))
    except ray.exceptions.RayError as error:
        first = str(error).strip().splitlines()[0]
        Attempts(task.folder).close_after_death("failed", f"{type(error).__name__}: {first}")


def _join(ray: Any, address: str | None, workers: int | None) -> None:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    if address is None:
        _keep_token_private()
        ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
        _check_loopback(ray)
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


def _keep_token_private() -> None:
    """Write the token of local clusters if there is none, and let nobody but its owner read it.

    Ray would write it by itself, but readable by every user of this machine.
    """
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    path = Path.home() / ".ray" / "auth_token"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError), open(path, "x", opener=_private) as file:
            file.write(token_hex(_TOKEN_BYTES))
        path.chmod(_PRIVATE)
    except OSError as error:
        raise InputError(f"Cannot write Ray's token {str(path)!r}: {error.strerror}.") from error


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE)


def _check_loopback(ray: Any) -> None:
    """Refuse a local cluster that other machines can reach."""
    address = ray.get_runtime_context().gcs_address
    if not ip_address(address.rpartition(":")[0].strip("[]")).is_loopback:
        ray.shutdown()
        raise InputError(
            f"The local Ray cluster would listen on {address}, where other machines can reach it: Ray was "
            f"imported too early. Set {_SEVERAL_MACHINES}=0 before Python starts."
        )


def _check_reachable(address: str) -> None:
    """Refuse an address where no cluster answers; Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    if "/" in host or not host or not port.isdigit():
        raise InputError(
            "A cluster's address is HOST:PORT of its head node, such as 10.0.0.1:6379, or auto; "
            f"not {address!r}."
        )
    advice = "is its head node running (ray start --head), and is the port open?"
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"No Ray cluster can be reached at {address}: {why}; {advice}") from error
    check = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        checked = subprocess.run(check, capture_output=True, timeout=_HEALTH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(f"The server at {address} is not a Ray cluster: {advice}") from None
    if b"AuthenticationError" in checked.stderr:
        raise InputError(
            f"The Ray cluster at {address} requires a token: copy ~/.ray/auth_token from its head node "
            "and export RAY_AUTH_MODE=token."
        )
    if checked.returncode:
        last = checked.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise InputError(f"The Ray cluster at {address} fails its health check: {''.join(last) or advice}")


def _check_capacity(ray: Any, resources: Resources) -> None:
    """Refuse runs that fit no machine of the cluster: they would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(
        node.get("CPU", 0) >= resources.cpus and node.get("GPU", 0) >= resources.gpus for node in nodes
    ):
        raise InputError(
            f"A run needs {resources.cpus} CPUs and {resources.gpus:g} GPUs: "
            "no machine of the cluster has that many."
        )


def _check_nodes(ray: Any, folder: Path) -> None:
    """Check that every machine of the cluster sees a file in `folder`, can write there, and fits this one."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    token = write_text(folder / f".probe-{uuid4().hex}", "")
    try:
        probe = ray.remote(num_cpus=0, max_retries=0)(_probe)
        answers = []
        for node in ray.nodes():
            if node["Alive"]:
                on_node = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                answer = probe.options(scheduling_strategy=on_node).remote(str(token), _VISIBLE_SECONDS)
                answers.append((node["NodeManagerAddress"], answer))
        for machine, answer in answers:
            _check_answer(machine, folder, _answer(ray, machine, answer))
    finally:
        token.unlink(missing_ok=True)


def _probe(token: str, patience: float) -> dict[str, Any]:
    """Report from a machine of the cluster: whether it sees the file, can write there, and its versions."""
    until = time.monotonic() + patience
    while not (visible := Path(token).exists()) and time.monotonic() < until:
        time.sleep(0.5)
    error = None
    try:
        if visible:
            output_folder(Path(token).parent)
    except OSError as failure:
        error = str(failure)
    return {"visible": visible, "error": error, "versions": versions()}


def _answer(ray: Any, machine: str, reference: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = ray.get(reference, timeout=_PROBE_SECONDS)
        return answer
    except ray.exceptions.GetTimeoutError:
        raise InputError(
            f"The machine {machine} of the cluster did not answer within {_PROBE_SECONDS:.0f} s."
        ) from None
    except ray.exceptions.RayError as error:
        last = str(error).strip().splitlines()[-1]
        raise InputError(f"The machine {machine} of the cluster cannot run ebql: {last}") from error


def _check_answer(machine: str, folder: Path, answer: dict[str, Any]) -> None:
    if not answer["visible"]:
        raise InputError(
            f"The machine {machine} does not see {str(folder)!r}: --out must be on a shared path."
        )
    if answer["error"] is not None:
        raise InputError(f"The machine {machine} cannot use the shared path. {answer['error']}")
    here = versions()
    for package in _SAME_VERSIONS:
        there = answer["versions"].get(package)
        if there != here.get(package):
            raise InputError(
                f"The machine {machine} has {package} {there}, this one {here.get(package)}: "
                "install the same version everywhere, or results would depend on the machine."
            )


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError('Clusters need Ray: pip install "ebql[ray]"') from error
    return ray
