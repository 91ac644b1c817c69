"""Read a run while another process writes it, in lockstep: no clock decides who comes first.

The writer saves a checkpoint at every step, and stops before each of its file operations. The reader lets
it take a few of them before each of its own. Proven by a case: the reader returns a whole checkpoint or a
whole list of records, exactly as the writer made it. It never calls intact files damaged.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from crash.cases import Case, scratch
from crash.file_layer import FileLayer, Operation, Part, Whole
from crash.processes import in_child
from crash.workloads import WORKLOADS, Workload, after_each_save
from ebql.runs import Checkpoint, CheckpointStore, RunFolder, read_metrics

_STEPS = 24


class Writer:
    """A process that writes a run, and waits before each of its file operations until it is let go."""

    def __init__(self, workload: Workload, folder: Path) -> None:
        may_go, self._go = os.pipe()
        self._waiting, waiting = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            for end in (self._go, self._waiting):
                os.close(end)

            def wait(_: Operation, whole: Whole, __: Part) -> Any:
                os.write(waiting, b".")
                if not os.read(may_go, 1):
                    os._exit(0)  # the reader has seen enough
                return whole()

            def write() -> None:
                with FileLayer(folder, wait).installed():
                    workload.go_on(folder)

            in_child(write)
            os._exit(0)
        for end in (may_go, waiting):
            os.close(end)
        self._at_work = bool(os.read(self._waiting, 1))

    def advance(self, operations: int) -> None:
        """Let the writer take this many operations; return when it waits for the next, or has ended."""
        for _ in range(operations):
            if not self._at_work:
                return
            os.write(self._go, b".")
            self._at_work = bool(os.read(self._waiting, 1))

    def stop(self) -> None:
        """End the writer where it is."""
        os.close(self._go)
        os.waitpid(self._child, 0)
        os.close(self._waiting)


def interleavings(count: int) -> Iterator[Case]:
    """Different interleavings of a reader and a writer, `count` for each of the deep workloads."""
    for name, workload in WORKLOADS.items():
        if workload.is_deep and name != "dqn-frames":
            for i in range(count):
                yield Case("reader", name, str(i))


def check_interleaving(case: Case) -> str | None:
    """Read once beside a writer, and compare with what an undisturbed writer makes."""
    workload, rng, valid = eager(case.workload), case.rng(), snapshots(case.workload)
    with scratch() as folder:
        writer = Writer(workload, folder / "run")
        try:
            writer.advance(rng.randint(100, valid["operations"] - 1))
            pace = rng.choice((1, 3, 20, 60))
            outcome = in_child(lambda: _read_beside(writer, folder / "run", rng, pace))
        finally:
            writer.stop()
    if not outcome.done:
        return f"at {pace} operations a read: {outcome}"
    if outcome.told:
        return f"at {pace} operations a read, intact files were called damaged: {outcome.told[0]}"
    step, digest, records = outcome.value
    if valid["checkpoints"].get(str(step)) != digest:
        return f"at {pace} operations a read: the checkpoint of step {step} was never written like that"
    if records != valid["records"][: len(records)]:
        return f"at {pace} operations a read: records that were never written"
    return None


def _read_beside(writer: Writer, folder: Path, rng: Random, pace: int) -> Any:
    def step(_: Operation, whole: Whole, __: Part) -> Any:
        writer.advance(rng.randint(0, pace))
        return whole()

    with FileLayer(folder, step, reads=True).installed():
        run = RunFolder.open(folder)
        checkpoint = run.checkpoints.load_latest()
        assert checkpoint is not None
        digest = _digest(checkpoint)  # the arrays are views of files: read them before they are deleted
        records = read_metrics(run.metrics_path)
    return checkpoint.step, digest, records


@cache
def eager(name: str) -> Workload:
    """Return the workload with a checkpoint at every step."""
    workload = WORKLOADS[name]
    options = {**workload.options, "checkpoint_period": 1, "log_period": 1, "evaluation_period": 0}
    return replace(workload, length=_STEPS, options=options)


@cache
def snapshots(name: str) -> dict[str, Any]:
    """Return a digest of every checkpoint that a writer makes, its records, and its number of operations."""
    workload = eager(name)

    def run(folder: Path) -> Any:
        made = dict[str, str]()

        def note(store: CheckpointStore, step: int) -> None:
            checkpoint = store.load_latest()
            assert checkpoint is not None
            made[str(step)] = _digest(checkpoint)

        after_each_save(note)
        layer = FileLayer(folder, lambda _, whole, __: whole())
        with layer.installed():
            workload.go_on(folder)
        records = read_metrics(RunFolder.open(folder).metrics_path)
        return {"checkpoints": made, "records": records, "operations": layer.n_operations}

    with scratch() as folder:
        outcome = in_child(lambda: run(folder / "run"))
    if not outcome.done:
        raise RuntimeError(f"The writer of {name} fails although nothing disturbs it: {outcome}")
    value: dict[str, Any] = outcome.value
    return value


def _digest(checkpoint: Checkpoint) -> str:
    digest = sha256(repr(sorted(checkpoint.state.items())).encode())
    for arrays in (checkpoint.tensors, checkpoint.arrays):
        for name, array in sorted(arrays.items()):
            digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()
