"""Cut the power: only what was fsynced is certain to survive.

A model of the disk follows every operation. A file keeps what it held at its last fsync. A folder keeps the
names that it had at its own last fsync: creating, renaming and deleting are lost otherwise. Three outcomes
are tried at each point, since a real disk may write early: `strict` loses everything that is not certain,
`data` loses file contents but no names, and `mixed` decides by chance for every file and folder.

Proven by a case: a checkpoint that was reported as saved is still there, and the run ends with the same
bits.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from crash.cases import Case, evenly, finish_and_compare, reference, scratch
from crash.file_layer import Act, FileLayer, Operation, Part, Whole, die, real_open
from crash.processes import in_child, in_place
from crash.workloads import WORKLOADS, after_each_save

MODES = ("strict", "data", "mixed")
Names = dict[str, int]
"""The names in a folder, with the number (inode) of the file or folder that each stands for."""


class Disk:
    """What would survive below `root` if the power failed now."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files: dict[int, bytes] = {}
        self._folders: dict[int, Names] = {_number(root): {}}

    def follow(self, operation: Operation, whole: Whole) -> Any:
        """Perform an operation, and note what it makes certain."""
        path = Path(operation.path)
        is_new = operation.name in ("open", "mkdir") and not path.exists()
        value = whole()
        if is_new and path.exists():
            if path.is_dir():
                self._folders[_number(path)] = {}
            else:
                self._files[_number(path)] = b""
        if operation.name == "fsync" and path.is_dir():
            self._folders[_number(path)] = _names(path)
        elif operation.name == "fsync":
            self._files[_number(path)] = _content(path)
        return value

    def cut(self, mode: str, rng: Random) -> None:
        """Leave below `root` only what survives."""
        # Writing the survivors gives the numbers of deleted files to others, so look at what is certain now.
        certain_files, certain_folders = dict(self._files), dict(self._folders)
        files, folders = dict[int, bytes](), dict[int, Names]()
        for path in (self.root, *sorted(self.root.rglob("*"))):
            if path.is_dir():
                folders[_number(path)] = _names(path)
            elif "events" not in path.parts:
                files[_number(path)] = _content(path)

        def names(number: int) -> Names:
            certain, now = certain_folders.get(number, {}), folders.get(number)
            lucky = mode == "data" or (mode == "mixed" and rng.random() < 0.5)
            return now if lucky and now is not None else certain

        def content(number: int) -> bytes:
            certain, now = certain_files.get(number, b""), files.get(number)
            if mode != "mixed" or now is None or rng.random() < 0.5:
                return certain
            return now[: rng.randint(min(len(certain), len(now)), len(now))]

        kept, written = _tree(_number(self.root), "", names, {*folders, *certain_folders}), dict[int, Path]()
        shutil.rmtree(self.root)
        self.root.mkdir()
        for name, number in sorted(kept.items()):
            path = self.root / name
            if number in folders or number in certain_folders:
                path.mkdir(parents=True, exist_ok=True)
            elif number in written:
                os.link(written[number], path)
            elif number in files or number in certain_files:
                path.write_bytes(content(number))
                written[number] = path


def cut_at(disk: Disk, number: int, mode: str, rng: Random) -> Act:
    """Cut the power before an operation."""

    def act(operation: Operation, whole: Whole, _: Part) -> Any:
        if operation.number == number:
            disk.cut(mode, rng)
            die()
        return disk.follow(operation, whole)

    return act


def cuts(limit: int) -> Iterator[Case]:
    """Each outcome at up to `limit` operations of each workload."""
    for name, workload in WORKLOADS.items():
        for i, number in enumerate(evenly(workload, len(reference(name).operations), limit)):
            yield Case("power", name, f"{number}-{MODES[i % len(MODES)]}")


def check_cut(case: Case) -> str | None:
    """Cut the power once, look for the last saved state, continue, compare."""
    workload, (number, mode) = WORKLOADS[case.workload], case.detail.split("-")
    with scratch() as folder:
        run, told = folder / "run", folder / "told"
        run.mkdir()

        def interrupted() -> None:
            after_each_save(lambda _, step: told.write_text(str(step)))
            act = cut_at(Disk(run), int(number), mode, case.rng())
            with FileLayer(run, act).installed():
                workload.go_on(run)

        outcome = in_child(interrupted)
        if not outcome.killed:
            return f"the power was not cut: {outcome}"
        promised = int(told.read_text()) if told.exists() else 0
        saved = in_place(lambda: workload.saved(run))
        if not saved.done:
            return f"the folder cannot be read afterwards: {saved}"
        if saved.value < promised:
            return f"step {promised} was reported as saved, but step {saved.value} is what is left"
        return finish_and_compare(workload, run)


def _tree(folder: int, prefix: str, names: Any, folders: set[int]) -> dict[str, int]:
    """Return the paths that survive below a folder, with their numbers."""
    found = dict[str, int]()
    for name, number in names(folder).items():
        found[prefix + name] = number
        if number in folders:
            found |= _tree(number, f"{prefix}{name}/", names, folders)
    return found


def _number(path: Path) -> int:
    return path.stat().st_ino


def _names(folder: Path) -> Names:
    return {path.name: _number(path) for path in folder.iterdir()}


def _content(path: Path) -> bytes:
    with real_open(path, "rb") as file:
        return bytes(file.read())
