"""The campaign as a whole: its scenarios, their sizes, the processes that share the cases, and the counts."""

import csv
import gc
import json
import multiprocessing
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from crash import cluster, corruption, hostile, io_errors, kills, power, readers
from crash.cases import Case, Check, reference, scratch
from crash.workloads import WORKLOADS
from ebql.runs.provenance import commit

ALL = 10**6
_PROGRESS_SECONDS = 15.0


@dataclass(frozen=True)
class Scenario:
    """A kind of case."""

    title: str
    cases: Callable[[int], Iterable[Case]]
    """From a size to the cases; what the size counts is the scenario's own."""
    check: Check
    size: int
    """For the whole campaign."""
    sample: int
    """For a bounded sample."""
    alone: bool = False
    """Whether its cases need the machine for themselves."""


SCENARIOS: dict[str, Scenario] = {
    "kill": Scenario("killed once, at each file operation", kills.kills, kills.check_kill, ALL, 4),
    "multikill": Scenario("killed two or three times in a row", kills.sequences, kills.check_sequence, 48, 2),
    "power": Scenario("power cut: only what was fsynced survives", power.cuts, power.check_cut, 60, 3),
    "error": Scenario("a file operation fails", io_errors.failures, io_errors.check_failure, 60, 3),
    "corruption": Scenario("a file of a run is damaged", corruption.damages, corruption.check_damage, 1, 0),
    "saved-agent": Scenario("a saved agent is damaged", corruption.agents, corruption.check_agent, 16, 1),
    "reader": Scenario("read beside a writer", readers.interleavings, readers.check_interleaving, 40, 2),
    "hostile": Scenario("hostile input", hostile.inputs, hostile.check_input, 200, 6),
    "cluster": Scenario(
        "a Ray cluster loses a part",
        lambda size: cluster.losses() if size else (),
        cluster.check_loss,
        1,
        0,
        alone=True,
    ),
}


@dataclass(frozen=True)
class Verdict:
    """How a case ended."""

    case: Case
    wrong: str | None
    """What went wrong; None if nothing did."""


@contextmanager
def prepared() -> Iterator[None]:
    """Import, compile and train once, so that every forked child starts warm; keep the intact runs."""
    import torch

    torch.set_num_threads(1)
    provenance = import_module("ebql.runs.provenance")
    setattr(provenance, "version", cache(version))  # noqa: B010 - reading metadata takes a fifth of a run's time
    words = sys.argv
    with scratch() as folder:
        for workload in WORKLOADS.values():
            workload.go_on(folder / "warm" / workload.name)
        sys.argv = words  # a run sets it to the command that it records
        corruption.keep_in(folder)
        for name, workload in WORKLOADS.items():
            reference(name)
            corruption.readings(name)
            if workload.is_deep:
                corruption.saved_agent(name)
        gc.collect()
        gc.freeze()  # or children would copy the objects' memory to count references
        yield


def select(scenarios: Iterable[str], *, sample: bool) -> list[Case]:
    """Return the cases of these scenarios, in a fixed order."""
    chosen = [SCENARIOS[name] for name in scenarios]
    return [
        case for scenario in chosen for case in scenario.cases(scenario.sample if sample else scenario.size)
    ]


def find(name: str) -> Case:
    """Return the case with this name."""
    return Case(*name.split("/", 2))


def perform(case: Case) -> Verdict:
    """Perform one case; an exception of the campaign itself counts as a failure."""
    try:
        return Verdict(case, SCENARIOS[case.scenario].check(case))
    except Exception as error:
        return Verdict(case, f"the case could not be performed: {type(error).__name__}: {error}")


def perform_all(
    cases: list[Case], jobs: int, told: Callable[[str], object], log: Path | None = None
) -> list[Verdict]:
    """Perform the cases in `jobs` forked processes; tell the progress now and then, and every failure.

    The order is random but fixed: after Ctrl-C, what was done is an even sample, and it counts. With a `log`,
    each verdict is appended to it, and cases that this commit has passed are not performed again.
    """
    verdicts = [] if log is None else _passed(log, cases)
    done, last = {verdict.case for verdict in verdicts}, time.monotonic()
    together = [case for case in cases if case not in done and not SCENARIOS[case.scenario].alone]
    random.Random(0).shuffle(together)
    alone = [case for case in cases if case not in done and SCENARIOS[case.scenario].alone]
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        results = chain(pool.imap_unordered(perform, together, chunksize=4), map(perform, alone))
        for verdict in _until_interrupted(results):
            verdicts.append(verdict)
            if log is not None:
                with log.open("a") as file:
                    file.write(json.dumps([commit(), verdict.case.name, verdict.wrong]) + "\n")
            if verdict.wrong:
                told(f"FAILED {verdict.case.name}: {verdict.wrong}\n  repeat: {repeat_command(verdict.case)}")
            if time.monotonic() - last > _PROGRESS_SECONDS:
                last = time.monotonic()
                failed = sum(verdict.wrong is not None for verdict in verdicts)
                told(f"{len(verdicts):,} of {len(cases):,} cases, {failed} failed ({verdict.case.scenario})")
    places = {case: i for i, case in enumerate(cases)}
    return sorted(verdicts, key=lambda verdict: places[verdict.case])


def _passed(log: Path, cases: Iterable[Case]) -> list[Verdict]:
    """Return the cases that a log calls passed by this commit; what failed is performed again."""
    lines = log.read_text().splitlines() if log.exists() else []
    verdicts = [json.loads(line) for line in lines]
    passed = {name for made_by, name, wrong in verdicts if made_by == commit() and wrong is None}
    return [Verdict(case, None) for case in cases if case.name in passed]


def _until_interrupted(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    with suppress(KeyboardInterrupt):
        yield from verdicts


def repeat_command(case: Case) -> str:
    """Return the command that performs this case alone."""
    return f"make crash CASE='{case.name}'"


def counts(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """Return one row for each scenario and workload: cases and failures."""
    total, failed = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for verdict in verdicts:
        key = verdict.case.scenario, verdict.case.workload
        total[key] += 1
        failed[key] += verdict.wrong is not None
    return [
        {"scenario": scenario, "workload": workload, "cases": cases, "failed": failed[scenario, workload]}
        for (scenario, workload), cases in total.items()
    ]


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Return the counts of each scenario as a Markdown table."""
    total, failed = Counter[str](), Counter[str]()
    for row in rows:
        total[row["scenario"]] += row["cases"]
        failed[row["scenario"]] += row["failed"]
    lines = ["| scenario | what happens | cases | failed |", "|---|---|---|---|"]
    lines += [f"| {name} | {SCENARIOS[name].title} | {total[name]:,} | {failed[name]:,} |" for name in total]
    return "\n".join(lines)


def write(folder: Path, verdicts: list[Verdict], planned: int, seconds: float, command: str) -> None:
    """Write the counts as CSV, a report with date, commit and versions as JSON, and a page.

    `planned` is the number of cases of the whole campaign; fewer were performed if it was interrupted.
    """
    from ebql.runs import provenance, write_json, write_text

    rows = counts(verdicts)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "counts.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    made_by = {**provenance(command.split()), "machine": platform.processor() or platform.machine()}
    failures = [
        {"case": verdict.case.name, "wrong": verdict.wrong, "repeat": repeat_command(verdict.case)}
        for verdict in verdicts
        if verdict.wrong
    ]
    content = {
        "made_by": made_by,
        "seconds": round(seconds),
        "planned": planned,
        "cases": len(verdicts),
        "failures": failures,
    }
    write_json(folder / "campaign.json", content)
    head = (
        f"Made on {made_by['date'][:10]} by commit {(made_by['commit'] or 'unknown')[:12]} with `{command}`"
    )
    about = "`counts.csv` has the counts by workload, `campaign.json` every failure and how to repeat it."
    promise = "[docs/reliability.md](../../docs/reliability.md) says what each scenario proves."
    took = f"{len(verdicts):,} of {planned:,} planned cases in {seconds / 60:.0f} minutes"
    page = f"# The crash campaign\n\n{head}: {took}.\n\n{table(rows)}\n\n{about}\n{promise}\n"
    write_text(folder / "README.md", page)
