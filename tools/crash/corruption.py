"""Damage every file of a run and of saved agents.

Each of three readers looks at the damaged folder: `load` (the newest weights), `read` (what a report sees)
and `go_on` (continue the run). Proven by a case: a reader refuses with one clear line, or warns and uses
something older, or the damage makes no difference to what it returns. It never returns something else in
silence, and never ends with a traceback.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from crash.cases import Case, attempt, reference, scratch
from crash.kills import kill_at
from crash.processes import Outcome, in_child, in_place
from crash.workloads import WORKLOADS, Workload

Damage = Callable[[bytes, Random], bytes | None]
"""From the content of a file to its damaged content; None deletes the file."""


def _flip(content: bytes, rng: Random) -> bytes:
    damaged = bytearray(content)
    damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _blank(content: bytes, rng: Random) -> bytes:
    """A block that was never written reads as zeros."""
    start = rng.randrange(len(content))
    length = min(rng.choice((8, 64, 512)), len(content) - start)
    return content[:start] + bytes(length) + content[start + length :]


def _cut(content: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _lengthen(content: bytes, rng: Random) -> bytes:
    return content + rng.randbytes(rng.randint(1, 40))


def _digit(content: bytes, rng: Random) -> bytes:
    """Another digit in place of one: still valid JSON, and another number."""
    places = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if not places:
        return _flip(content, rng)
    place = rng.choice(places)
    return content[:place] + bytes([48 + (content[place] - 47) % 10]) + content[place + 1 :]


def _repeat(content: bytes, rng: Random) -> bytes:
    """A line, or a piece, twice."""
    lines = content.splitlines(keepends=True)
    i = rng.randrange(len(lines))
    return b"".join([*lines[: i + 1], *lines[i:]])


def _delete(_: bytes, __: Random) -> None:
    return None


DAMAGES: dict[str, Damage] = {
    "flip": _flip,
    "digit": _digit,
    "blank": _blank,
    "cut": _cut,
    "lengthen": _lengthen,
    "repeat": _repeat,
    "delete": _delete,
}


def damages(rounds: int) -> Iterator[Case]:
    """Every damage to every kind of file of a run that was killed on its way, `rounds` times."""
    for name in WORKLOADS:
        for file in _kinds_of_files(name):
            for damage in DAMAGES:
                for i in range(rounds):
                    yield Case("corruption", name, f"{file}-{damage}-{i}")


def check_damage(case: Case) -> str | None:
    """Damage a file of an unfinished run, and let all readers look at it."""
    workload, rng = WORKLOADS[case.workload], case.rng()
    file, damage, _ = case.detail.rsplit("-", 2)
    with scratch() as folder:
        shutil.copytree(unfinished(case.workload), folder / "run")
        target = rng.choice(_files(folder / "run", file))
        if not harm(target, damage, rng):
            return None
        told = [f"{target.relative_to(folder / 'run')}, {damage}:"]
        for reader, intact in readings(case.workload).items():
            outcome = in_place(partial(READERS[reader], workload, folder / "run"))
            if wrong := _judged(outcome, intact):
                return f"{told[0]} {reader}: {wrong}"
        outcome = in_place(lambda: workload.go_on(folder / "run"))
        if outcome.done and not outcome.told:
            wanted, got = reference(case.workload).result, workload.result(folder / "run")
            differing = sorted(name for name in {**wanted, **got} if wanted.get(name) != got.get(name))
            if differing:
                return f"{told[0]} go_on in silence to other bits in {', '.join(differing)}"
        elif not outcome.done and not outcome.refused:
            return f"{told[0]} go_on: a traceback: {outcome}"
    return None


def agents(count: int) -> Iterator[Case]:
    """Damages to the file of a saved agent, `count` of each kind for each deep workload."""
    for name, workload in WORKLOADS.items():
        if workload.is_deep:
            for damage in DAMAGES:
                for i in range(count if damage != "delete" else 1):
                    yield Case("saved-agent", name, f"{damage}-{i}")


def check_agent(case: Case) -> str | None:
    """Damage a saved agent and load it."""
    rng = case.rng()
    with scratch() as folder:
        path = folder / "agent.safetensors"
        shutil.copy(saved_agent(case.workload), path)
        intact = load(WORKLOADS[case.workload], path)
        if not harm(path, case.detail.rpartition("-")[0], rng):
            return None
        return _judged(in_place(lambda: load(WORKLOADS[case.workload], path)), intact)


def harm(path: Path, damage: str, rng: Random) -> bool:
    """Damage a file, alone even if it has hard links; return whether it changed."""
    content = path.read_bytes()
    damaged = DAMAGES[damage](content, rng) if content else _lengthen(content, rng)
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    return damaged != content


def load(_: Workload, path: Path) -> Any:
    """Return a digest of the weights and of the description that `Agent.load` gives."""
    from ebql.deep.agent import Agent

    agent = Agent.load(path)
    about = json.dumps([agent._about(), agent.steps, agent._learner.updates], sort_keys=True)
    tensors = sorted((name, sha256(x.tobytes()).hexdigest()) for name, x in agent._learner.state().items())
    return sha256(json.dumps([about, tensors]).encode()).hexdigest()


def read(workload: Workload, path: Path) -> Any:
    """Return what a report reads: the options and every record; or that the run is marked as changed."""
    from ebql.analysis.runs import read_runs
    from ebql.studies.tables.runs import read_seed_curves

    (run,) = read_runs([path])
    about = {key: run.config[key] for key in ("agent", "environment", "label", "options")}
    curves = None if workload.is_deep else read_seed_curves(path)
    arrays = () if curves is None else (curves.seeds, *curves.metrics.values())
    digests = [sha256(array.tobytes()).hexdigest() for array in arrays]
    return {"about": about, "records": list(run.records), "curves": digests}


READERS: dict[str, Callable[[Workload, Path], Any]] = {"load": load, "read": read}


@cache
def unfinished(name: str) -> Path:
    """Return the folder of a run that was killed near its end, with two checkpoints."""
    folder = _kept() / f"{name}-unfinished"
    if not folder.exists():
        attempt(WORKLOADS[name], folder, kill_at(reference(name).n_until_saved - 2, "before"))
    return folder


@cache
def readings(name: str) -> dict[str, Any]:
    """Return what the readers see in the intact folder."""
    workload = WORKLOADS[name]
    readers = READERS if workload.is_deep else {"read": read}
    outcomes = {reader: in_child(partial(READERS[reader], workload, unfinished(name))) for reader in readers}
    for reader, outcome in outcomes.items():
        if not outcome.done:
            raise RuntimeError(f"{reader} fails on the intact run of {name}: {outcome}")
    return {reader: outcome.value for reader, outcome in outcomes.items()}


@cache
def saved_agent(name: str) -> Path:
    """Return the file of a workload's trained agent."""
    path = _kept() / f"{name}.safetensors"
    if not path.exists():

        def save() -> None:
            from ebql.deep.agent import Agent

            Agent.load(unfinished(name)).save(path)

        in_child(save)
    return path


_KEPT: list[Path] = []


def _kept() -> Path:
    return _KEPT[0]


def keep_in(folder: Path) -> None:
    """Say where the intact runs are kept."""
    _KEPT[:] = [folder]


def _kinds_of_files(name: str) -> list[str]:
    """Return the files of a run, those of checkpoints without the step: each array once."""
    folder = unfinished(name)
    return sorted({_kind(path.relative_to(folder)) for path in folder.rglob("*") if _counts(path)})


def _files(folder: Path, kind: str) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if _counts(path) and _kind(path.relative_to(folder)) == kind
    )


def _kind(path: Path) -> str:
    return path.name


def _counts(path: Path) -> bool:
    hidden = any(part.startswith(".") and part != "." for part in path.parts[-3:])
    return path.is_file() and not hidden and "events" not in path.parts


def _judged(outcome: Outcome, intact: Any) -> str | None:
    if not outcome.done:
        return None if outcome.refused else f"a traceback: {outcome}"
    if outcome.told or outcome.value == intact:
        return None
    if isinstance(
        intact, dict
    ):  # an end may be missing, as in a run that has not come so far: the rest is right
        records, curves = outcome.value["records"], outcome.value["curves"]
        begun = {
            **intact,
            "records": intact["records"][: len(records)],
            "curves": intact["curves"] if curves else [],
        }
        if outcome.value == begun:
            return None
    return "returned something else in silence"
