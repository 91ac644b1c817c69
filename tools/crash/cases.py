"""What all scenarios share: a case, the unbroken run that it is compared with, and folders to work in."""

import hashlib
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crash.file_layer import Act, FileLayer, Operation, Part, Whole
from crash.processes import Outcome, in_child, in_place
from crash.workloads import WORKLOADS, Workload, leftovers

_MEMORY = Path("/dev/shm")
"""A file system in memory, on which fsync costs nothing: durability is modelled, not measured."""


@dataclass(frozen=True)
class Case:
    """One thing that is done to one workload; its name repeats it."""

    scenario: str
    workload: str
    detail: str

    @property
    def name(self) -> str:
        """The name that `--only` takes."""
        return f"{self.scenario}/{self.workload}/{self.detail}"

    def rng(self) -> random.Random:
        """Return the case's own source of randomness."""
        return random.Random(hashlib.sha256(self.name.encode()).digest())


Check = Callable[[Case], str | None]
"""Perform a case; return what went wrong in a line, or None."""


@dataclass(frozen=True)
class Reference:
    """A run that nothing happened to."""

    result: Mapping[str, str]
    operations: tuple[tuple[str, str], ...]
    """Name and path of each operation that changes a file."""
    n_with_reads: int
    """Operations including those that only read."""

    @property
    def n_until_first_saved(self) -> int:
        """The number of the operation that completes the first saved state."""
        return self._saves[0]

    @property
    def n_until_saved(self) -> int:
        """The number of the operation that completes the last saved state: killed before it, work is left."""
        return self._saves[-1]

    @property
    def _saves(self) -> list[int]:
        """A checkpoint is complete when its folder gets its name, the step; a table when `seeds.npz` does."""
        return [
            number
            for number, (name, path) in enumerate(self.operations, 1)
            if name in ("rename", "replace") and (Path(path).name.isdigit() or Path(path).name == "seeds.npz")
        ]


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder of one's own, deleted afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ebql-crash-", dir=_MEMORY if _MEMORY.is_dir() else None)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def attempt(workload: Workload, folder: Path, act: Act, *, reads: bool = False) -> Outcome:
    """Start or continue a workload in a child whose file operations go through `act`."""

    def run() -> int:
        layer = FileLayer(folder, act, reads=reads)
        with layer.installed():
            workload.go_on(folder)
        return layer.n_operations

    return in_child(run)


@cache
def reference(name: str) -> Reference:
    """Return the unbroken run of a workload."""
    workload, seen = WORKLOADS[name], list[tuple[str, str]]()

    def note(operation: Operation, whole: Whole, _: Part) -> Any:
        seen.append((operation.name, operation.path))
        return whole()

    def run(folder: Path) -> list[tuple[str, str]]:
        with FileLayer(folder, note).installed():
            workload.go_on(folder)
        return seen

    with scratch() as folder:
        noted = in_child(lambda: run(folder / "run"))
        with_reads = attempt(workload, folder / "reads", lambda _, whole, __: whole(), reads=True)
        for outcome in (noted, with_reads):
            if not outcome.done:
                raise RuntimeError(f"The workload {name} fails although nothing was broken: {outcome}")
        result = workload.result(folder / "run")
        if workload.result(folder / "reads") != result:
            raise RuntimeError(f"The workload {name} does not repeat to the bit.")
    return Reference(result, tuple(map(tuple, noted.value)), with_reads.value)


def finish_and_compare(workload: Workload, folder: Path) -> str | None:
    """Continue a broken run to its end; say what differs from the unbroken one."""
    outcome = in_place(lambda: workload.go_on(folder))
    if not outcome.done:
        return f"the run cannot be continued: {outcome}"
    return difference(workload, folder)


def difference(workload: Workload, folder: Path) -> str | None:
    """Say in which files a finished run differs from the unbroken one, or what it left behind."""
    wanted, got = reference(workload.name).result, workload.result(folder)
    differing = sorted(name for name in {**wanted, **got} if wanted.get(name) != got.get(name))
    if differing:
        return f"other bits in {', '.join(differing)}"
    left = leftovers(folder)
    return f"left behind: {', '.join(left)}" if left else None


def evenly(workload: Workload, count: int, limit: int) -> list[int]:
    """Return at most `limit` numbers of 1…count, spread evenly, the first and the last among them."""
    n = max(2, round(min(count, limit) * workload.share))
    return sorted({1 + round(i * (count - 1) / (n - 1)) for i in range(n)})
