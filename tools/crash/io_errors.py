"""Let a file operation fail, once or from then on.

Proven by a case: the run ends with one clear line, or goes on where it can; it never ends with a traceback.
Once the disk works again, it continues and ends with the same bits.
"""

import errno
import os
from collections.abc import Iterator
from typing import Any

from crash.cases import Case, attempt, difference, evenly, finish_and_compare, reference, scratch
from crash.file_layer import Act, Operation, Part, Whole
from crash.workloads import WORKLOADS

ERRORS = ("ENOSPC", "EIO", "EACCES", "EDQUOT")
_TAKE_SPACE = ("open", "write", "fsync", "mkdir", "link")
"""What a full disk refuses; deleting and renaming still work there."""


def fail_at(number: int, name: str, *, lasting: bool) -> Act:
    """Fail the operation with this error; with `lasting`, and all later ones that this error can meet."""
    code = getattr(errno, name)
    full = name in ("ENOSPC", "EDQUOT")

    def act(operation: Operation, whole: Whole, part: Part) -> Any:
        due = operation.number >= number if lasting else operation.number == number
        if due and (not full or operation.name in _TAKE_SPACE):
            if part is not None:
                part()  # a disk that fills up takes the first half
            raise OSError(code, os.strerror(code), operation.path)
        return whole()

    return act


def failures(limit: int) -> Iterator[Case]:
    """Each error in turn, once and lasting, at up to `limit` operations of each workload."""
    for name, workload in WORKLOADS.items():
        for i, number in enumerate(evenly(workload, reference(name).n_with_reads, limit)):
            how = "once" if i // len(ERRORS) % 2 else "lasting"
            yield Case("error", name, f"{number}-{ERRORS[i % len(ERRORS)]}-{how}")


def check_failure(case: Case) -> str | None:
    """Fail, then continue on a disk that works, and compare."""
    workload, (number, name, how) = WORKLOADS[case.workload], case.detail.split("-")
    with scratch() as folder:
        run = folder / "run"
        outcome = attempt(workload, run, fail_at(int(number), name, lasting=how == "lasting"), reads=True)
        if outcome.done:
            return difference(workload, run)
        if not outcome.refused:
            return f"a traceback instead of one line: {outcome}"
        if "\n" in str(outcome.error):
            return f"more than one line: {outcome.error!r}"
        return finish_and_compare(workload, run)
