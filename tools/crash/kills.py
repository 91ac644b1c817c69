"""Kill the process at every file operation, and two or three times in a row.

Proven by a case: a run killed at these operations continues, and ends with the same bits as one that was
never killed: metrics, weights, optimiser, replay and random states. Nothing temporary is left behind.
"""

from collections.abc import Iterator
from typing import Any

from crash.cases import Case, attempt, evenly, finish_and_compare, reference, scratch
from crash.file_layer import Act, Operation, Part, Whole, die
from crash.workloads import WORKLOADS


def kill_at(number: int, moment: str) -> Act:
    """Kill the process before the operation, or amid it: half of a write reaches the file.

    After an operation is before the next one.
    """

    def act(operation: Operation, whole: Whole, part: Part) -> Any:
        if operation.number == number:
            if moment == "amid" and part is not None:
                part()
            die()
        return whole()

    return act


def kills(limit: int) -> Iterator[Case]:
    """One kill at each operation of each workload, and amid each write; at most `limit` operations each."""
    for name, workload in WORKLOADS.items():
        operations = reference(name).operations
        for number in evenly(workload, len(operations), limit):
            yield Case("kill", name, f"{number}-before")
            if operations[number - 1][0] == "write":
                yield Case("kill", name, f"{number}-amid")


def check_kill(case: Case) -> str | None:
    """Kill once, continue, compare."""
    number, moment = case.detail.split("-")
    return _broken(case, [(int(number), moment)])


def sequences(count: int) -> Iterator[Case]:
    """Two or three kills in a row, `count` times for each workload."""
    for name in WORKLOADS:
        for i in range(count):
            yield Case("multikill", name, f"{2 + i % 2}-kills-{i}")


def check_sequence(case: Case) -> str | None:
    """Kill at random operations, the later ones counted from each new start; continue, compare.

    Every second sequence begins early, before the first checkpoint is complete: that is where starting over
    is hardest to tell from going on.
    """
    rng, n_kills = case.rng(), int(case.detail[0])
    early = int(case.detail.rpartition("-")[2]) // 2 % 2 == 0
    first, last = reference(case.workload).n_until_first_saved, reference(case.workload).n_until_saved
    numbers, left = list[int](), first if early else last - first
    for i in range(n_kills):
        numbers.append(rng.randint(1, max(1, left - n_kills + i)))
        # Whoever starts over may save the operations of the first checkpoint, and no more than that.
        left = max(1, (last - first - sum(numbers)) // (2 if early else 1))
    return _broken(case, [(number, rng.choice(("before", "amid"))) for number in numbers])


def _broken(case: Case, planned: list[tuple[int, str]]) -> str | None:
    workload = WORKLOADS[case.workload]
    with scratch() as folder:
        for i, (number, moment) in enumerate(planned, 1):
            outcome = attempt(workload, folder / "run", kill_at(number, moment))
            if not outcome.killed:
                return f"kill {i} of {planned}: {outcome}"
        wrong = finish_and_compare(workload, folder / "run")
        return wrong and f"after kills at {planned}: {wrong}"
