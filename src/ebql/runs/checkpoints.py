"""Atomic checkpoints with checksums, without pickle.

Each checkpoint is a folder named by its step. Weights and optimiser state are stored as safetensors, small
state as JSON, and large arrays as raw files. A manifest holds the length and the CRC-32 of each file, and its
own CRC-32. The folder is written under a temporary name, flushed to disk and then renamed.

An array that is read-only never changes. If the checkpoint before the previous one has the same array, its
file is hard-linked instead of written again. The two checkpoints that are kept thus never share a file, and
damage to one leaves the other intact. The price is that every array is written twice instead of once.
"""

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError, RunError
from ebql.runs.files import PARTIAL, decoded, open_unlinked, refuse_link, sync_folder

Arrays = Mapping[str, NDArray[Any]]
Checksum = dict[str, int]  # "bytes" and "crc32" of a file

_N_KEPT = 2
_CHUNK = 1 << 24
_MANIFEST, _TENSORS, _STATE = "manifest.json", "tensors.safetensors", "state.json"


class CheckpointError(RunError):
    """A checkpoint cannot be written, or no checkpoint can be read."""


class DamagedCheckpointWarning(UserWarning):
    """A checkpoint is damaged, and an older one is used."""


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint.

    >>> from ebql import DQN
    >>> from ebql.runs import RunFolder
    >>> _ = DQN("CartPole-v1", evaluation_period=0, seed=0).learn(200, out="runs/saved")
    >>> checkpoint = RunFolder.open("runs/saved").checkpoints.load_latest()
    >>> checkpoint.step, checkpoint.arrays["replay.observations"].shape[1:]
    (200, (4,))
    """

    step: int
    """The agent step at which it was saved."""
    tensors: dict[str, NDArray[Any]]
    """Weights and the state of the optimiser."""
    state: dict[str, Any]
    """Small values, such as counts and random states."""
    arrays: dict[str, NDArray[Any]]
    """Large arrays, such as the replay: read-only views of the files, to be copied."""


class CheckpointStore:
    """The folder with the last two checkpoints of a run.

    >>> store = CheckpointStore("checkpoints")
    >>> for step in (100, 200, 300):
    ...     store.save(step, {"weights": np.ones(2)}, {"updates": step // 4}, {"replay": np.zeros((5, 3))})
    >>> store.steps(), store.load_latest().state
    ([200, 300], {'updates': 75})
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def save(self, step: int, tensors: Arrays, state: Mapping[str, Any], arrays: Arrays) -> None:
        """Save a checkpoint of `step` atomically, then delete all but the last two.

        The folder that the checkpoints are in must exist: one that was deleted during a run stays deleted.

        Only arrays that are not contiguous are copied in memory. If saving fails, the earlier checkpoints
        stay intact and a `CheckpointError` is raised.
        """
        try:
            if self._folder.is_symlink():
                refuse_link(self._folder)
            if not self._folder.is_dir():
                self._folder.mkdir()
                sync_folder(self._folder.parent)
            earlier = [self._folder / f"{other:012d}" for other in self.steps() if other < step]
            with _atomic_folder(self._folder / f"{step:012d}") as folder:
                _write(folder, step, tensors, state, arrays, _linkable(earlier[-_N_KEPT:]))
            self._prune(step)
        except OSError as error:
            place, why = str(self._folder), error.strerror or error
            raise CheckpointError(
                f"Cannot save the checkpoint of step {step} in {place!r}: {why}."
            ) from error

    def load_latest(self, *, weights_only: bool = False) -> Checkpoint | None:
        """Return the newest intact checkpoint, or None if there are no checkpoints.

        With `weights_only`, its arrays are neither read nor checked: damage to a replay leaves the weights
        usable. Each damaged checkpoint gives a `DamagedCheckpointWarning`. If none is intact, a
        `CheckpointError` is raised. A run may save checkpoints at the same time.
        """
        while True:
            folders = self._folders()
            found, damaged = self._newest_intact(sorted(folders), weights_only=weights_only)
            if self._folders() == folders or (found is not None and not damaged):
                break
        for (step, damage), (older, _) in pairwise([*damaged.items(), (found.step if found else None, "")]):
            line = f"The checkpoint of step {step} is damaged ({damage})"
            if older is None:
                raise CheckpointError(f"{line}, and there is no older one in {str(self._folder)!r}.")
            warnings.warn(f"{line}; using that of step {older}.", DamagedCheckpointWarning, stacklevel=2)
        return found

    def _newest_intact(
        self, steps: Sequence[int], *, weights_only: bool
    ) -> tuple[Checkpoint | None, dict[int, str]]:
        """Return the newest intact one of these checkpoints, and what is wrong with each newer one."""
        damaged: dict[int, str] = {}
        for step in reversed(steps):
            try:
                return _read(self._folder / f"{step:012d}", step, weights_only=weights_only), damaged
            except _DamageError as damage:
                damaged[step] = str(damage)
        return None, damaged

    def steps(self) -> list[int]:
        """Return the steps of all checkpoints in ascending order."""
        return sorted(self._folders())

    def _folders(self) -> dict[int, int]:
        """Return the steps of all checkpoints, each with the inode of its folder."""
        if self._folder.is_symlink():
            refuse_link(self._folder)
        try:
            with os.scandir(self._folder) as entries:
                inodes = {entry.name: entry.inode() for entry in entries}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return {int(name): inode for name, inode in inodes.items() if name.isascii() and name.isdigit()}

    def delete_leftovers(self) -> None:
        """Delete what an interrupted `save` has left; only for the process that holds the run's lock."""
        for path in self._folder.glob(".*"):
            shutil.rmtree(path, ignore_errors=True)

    def _prune(self, step: int) -> None:
        """Keep `step` and the one before it; later checkpoints were damaged and are deleted too."""
        past = [other for other in self.steps() if other <= step]
        for other in set(self.steps()) - set(past[-_N_KEPT:]):
            # Renamed first, because a partly deleted checkpoint must not look like a whole one.
            (self._folder / f"{other:012d}").rename(self._folder / f".{other}.{uuid4().hex}.old")
        self.delete_leftovers()


class _DamageError(Exception):
    """The files of a checkpoint are damaged."""


@contextmanager
def _atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `folder` on success and deleted on failure."""
    temporary = folder.with_name(f".{folder.name}.{uuid4().hex}{PARTIAL}")
    temporary.mkdir()
    try:
        yield temporary
        sync_folder(temporary)
        if folder.exists():
            folder.rename(temporary.with_suffix(".old"))
        temporary.rename(folder)
        sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _write(
    folder: Path,
    step: int,
    tensors: Arrays,
    state: Mapping[str, Any],
    arrays: Arrays,
    linkable: Mapping[str, tuple[Path, Checksum]],
) -> None:
    # safetensors writes the memory of an array as it is, even if its axes have another order.
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    files = {
        _TENSORS: _write_file(folder / _TENSORS, np.frombuffer(_safetensors().save(contiguous), np.uint8)),
        _STATE: _write_file(folder / _STATE, np.frombuffer(_encoded(state), np.uint8)),
    }
    layout = {}
    for i, (name, array) in enumerate(arrays.items()):
        if array.dtype.hasobject:
            raise TypeError(
                f"The array {name!r} holds Python objects, which cannot be stored without pickle."
            )
        file = f"array-{i:03d}.bin"
        linked = None if array.flags.writeable else _link(folder / file, array, linkable.get(name))
        files[file] = linked or _write_file(folder / file, array)
        layout[name] = {"file": file, "dtype": array.dtype.str, "shape": list(array.shape)}
    manifest = {"step": step, "files": files, "arrays": layout}
    content = {"crc32": zlib.crc32(_encoded(manifest)), "manifest": manifest}
    _write_file(folder / _MANIFEST, np.frombuffer(_encoded(content), np.uint8))


def _linkable(earlier: Sequence[Path]) -> dict[str, tuple[Path, Checksum]]:
    """Return the file and the checksum of each array of the checkpoint before the previous one, by name.

    The previous one stays, so nothing is shared with it; the one before is about to be deleted.
    """
    if len(earlier) < _N_KEPT:
        return {}
    folder = earlier[0]
    try:
        manifest = _read_manifest(folder)
    except _DamageError:
        return {}
    files = {name: entry["file"] for name, entry in manifest["arrays"].items()}
    return {name: (folder / file, manifest["files"][file]) for name, file in files.items()}


def _link(path: Path, array: NDArray[Any], earlier: tuple[Path, Checksum] | None) -> Checksum | None:
    """Hard-link `path` to an earlier file with the content of `array`; return its checksum, else None."""
    if earlier is None:
        return None
    file, checksum = earlier
    if checksum != {"bytes": array.nbytes, "crc32": zlib.crc32(_flat(array).data)}:
        return None
    try:
        if _file_crc32(file) != checksum["crc32"]:  # the file was damaged after it was written
            return None
        path.hardlink_to(file)
    except OSError:  # not every file system has hard links
        return None
    return checksum


def _file_crc32(path: Path) -> int:
    checksum = 0
    with open_unlinked(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _flat(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _write_file(path: Path, array: NDArray[Any]) -> Checksum:
    """Write the bytes of an array and flush them to disk; return their checksum."""
    flat = _flat(array)
    checksum = 0
    with path.open("xb") as file:
        for start in range(0, len(flat), _CHUNK):
            chunk = flat[start : start + _CHUNK].data
            checksum = zlib.crc32(chunk, checksum)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": len(flat), "crc32": checksum}


def _read(folder: Path, step: int, *, weights_only: bool) -> Checkpoint:
    if folder.is_symlink():
        refuse_link(folder)
    manifest = _read_manifest(folder)
    try:
        if manifest["step"] != step:
            raise _DamageError(f"{_MANIFEST} is for step {manifest['step']}")
        wanted = (_TENSORS, _STATE) if weights_only else manifest["files"]
        contents = {name: _read_file(folder, name, manifest["files"][name]) for name in wanted}
        layout = {} if weights_only else manifest["arrays"]
        arrays = {
            name: contents[entry["file"]].view(_plain_dtype(entry["dtype"])).reshape(entry["shape"])
            for name, entry in layout.items()
        }
        tensors, state = _load_tensors(contents[_TENSORS].tobytes()), decoded(contents[_STATE].tobytes())
    except InputError:  # a symbolic link
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        # A manifest with a right checksum and wrong content was written by somebody else.
        raise _DamageError(f"{_MANIFEST} does not describe its files") from error
    if not isinstance(state, dict):
        raise _DamageError(f"{_STATE} is not a state")
    return Checkpoint(step, tensors, state, arrays)


def _plain_dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.hasobject:
        raise TypeError(f"The dtype {name!r} holds Python objects.")
    return dtype


def _load_tensors(content: bytes) -> dict[str, NDArray[Any]]:
    try:
        tensors: dict[str, NDArray[Any]] = _safetensors().load(content)
    except import_module("safetensors").SafetensorError as error:
        raise _DamageError(f"{_TENSORS} cannot be read") from error
    return tensors


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        with open_unlinked(folder / _MANIFEST, "rb") as file:
            content = decoded(file.read())
        manifest: dict[str, Any] = content["manifest"]
        intact = content["crc32"] == zlib.crc32(_encoded(manifest))
    except InputError:  # a symbolic link
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _DamageError(f"{_MANIFEST} cannot be read") from error
    if not intact:
        raise _DamageError(f"{_MANIFEST} fails its checksum")
    return manifest


def _read_file(folder: Path, name: str, checksum: Checksum) -> NDArray[np.uint8]:
    """Return the bytes of a file as a memory map, after comparing them with their checksum."""
    if Path(name).name != name:
        raise _DamageError(f"{_MANIFEST} names a file outside of the checkpoint")
    try:
        with open_unlinked(folder / name, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size != checksum["bytes"]:
                raise _DamageError(f"{name} has {size} bytes instead of {checksum['bytes']}")
            content = np.memmap(file, np.uint8, "r").view(np.ndarray) if size else np.empty(0, np.uint8)
    except OSError as error:
        raise _DamageError(f"{name} cannot be read") from error
    if zlib.crc32(content.data) != checksum["crc32"]:
        raise _DamageError(f"{name} fails its checksum")
    return content


def _encoded(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False).encode()


def _safetensors() -> Any:
    try:
        return import_module("safetensors.numpy")
    except ImportError as error:
        raise InputError('Checkpoints need safetensors: pip install "ebql[deep]"') from error
