"""Break a Ray cluster under a study: kill a worker, remove a node, kill the driver.

Proven by a case: the study is finished by its retries, or by the same command given again, and every run
has the same bits as on this machine alone. Each case is a process of its own (`python -m crash.cluster
worker`), since Ray and the campaign's forked children do not mix.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crash.cases import Case, scratch

_SECONDS = 400
_STORE_BYTES = 80_000_000

STUDY = """
agents = ["dqn", "ebql"]
environments = ["CartPole-v1"]
seeds = 2
steps = 1_500
preset = "plain"
hidden = [16]
learning_starts = 100
log_period = 100
checkpoint_period = 100
evaluation = { period = 500, episodes = 2 }
"""


def losses() -> Iterator[Case]:
    """One case for each part of a cluster."""
    for part in ("worker", "node", "driver"):
        yield Case("cluster", "study", part)


def check_loss(case: Case) -> str | None:
    """Perform the case in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "crash.cluster", case.detail],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        env={
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # it listens on loopback alone
            "OMP_NUM_THREADS": "1",
        },
    )
    told = (done.stdout + done.stderr).strip().splitlines()
    return None if done.returncode == 0 else (told[-1] if told else f"exit code {done.returncode}")


def main(part: str) -> int:
    """Break this part under a study and compare; print what went wrong."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    from ebql.studies.definition import read_study
    from ebql.studies.plan import plan, run_folder
    from ebql.studies.runners import LocalRunner
    from ebql.studies.sweep import sweep

    with scratch() as folder:
        path = folder / "study.toml"
        path.write_text(STUDY)
        study = read_study(path)
        sweep(study, plan(study, folder / "here"), folder / "here", LocalRunner(2), lambda: None)
        head = {"num_cpus": 2, "object_store_memory": _STORE_BYTES}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            node: Any = (
                cluster.add_node(num_cpus=2, object_store_memory=_STORE_BYTES) if part == "node" else None
            )
            command = [
                "sweep",
                str(path),
                "--out",
                str(folder / "there"),
                "--on",
                "ray",
                "--address",
                cluster.address,
            ]
            folders = [run_folder(folder / "there", run) for run in study.runs]
            driver = _start(command)
            _wait(lambda: _active(folders, node), driver)
            if part == "worker":
                os.kill(_active(folders, None)["pid"], signal.SIGKILL)
            elif part == "node":
                cluster.remove_node(node, allow_graceful=False)
            else:
                driver.kill()
            code = driver.wait(_SECONDS)
            if part == "driver":
                code = _start(command).wait(_SECONDS)
        finally:
            cluster.shutdown()  # type: ignore[no-untyped-call]
        if code:
            print(f"the sweep ended with exit code {code}")
            return 1
        for run in study.runs:
            if _content(run_folder(folder / "here", run)) != _content(run_folder(folder / "there", run)):
                print(f"{run.name} has other bits than on one machine")
                return 1
    return 0


def _start(words: list[str]) -> subprocess.Popen[bytes]:
    code = "import sys; from ebql.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _active(folders: list[Path], node: Any) -> Any:
    """Return the attempt of a run that is at work and has saved a checkpoint, on `node` if there is one."""
    from ebql.runs import Attempts, RunFolder

    for folder in folders:
        events = Attempts(folder).read()
        if not events or events[-1]["event"] != "started" or not (folder / "config.json").exists():
            continue
        there = node is None or events[-1]["node"] == node.node_id
        if there and any(RunFolder.open(folder).checkpoints.steps()):
            return events[-1]
    return None


def _wait(true: Callable[[], Any], driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not true():
        if driver.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("The study ended before it could be broken.")
        time.sleep(0.05)


def _content(folder: Path) -> dict[str, bytes]:
    from ebql.runs import RunFolder

    run = RunFolder.open(folder)
    last = folder / "checkpoints" / f"{run.checkpoints.steps()[-1]:012d}"
    return {
        "metrics": run.metrics_path.read_bytes(),
        **{path.name: path.read_bytes() for path in last.iterdir()},
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
