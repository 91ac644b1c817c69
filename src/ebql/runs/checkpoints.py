"""Checkpoints that appear whole, are checked when read, and are never pickles.

One folder a checkpoint, named by its step. Weights and optimiser lie in safetensors, small state in JSON,
big arrays in raw files; a manifest holds each file's length and CRC-32, and its own. The folder is
written under another name, flushed to disk and renamed: the rename is the moment it exists.

A read-only array is one that never changes. If the checkpoint before has it too, its file is linked instead
of written again: one file then serves both, and damage to it would be damage to both.
"""

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError, RunError

Arrays = Mapping[str, NDArray[Any]]
Seal = dict[str, int]

_KEPT = 2
_CHUNK = 1 << 24
_MANIFEST, _TENSORS, _STATE = "manifest.json", "tensors.safetensors", "state.json"


class CheckpointError(RunError):
    """A checkpoint that could not be written, or none that can be read."""


class DamagedCheckpointWarning(UserWarning):
    """A checkpoint whose files are not what was written; an older one is used."""


@dataclass(frozen=True)
class Checkpoint:
    """What was saved at a step. `arrays` are read-only views of the files: copy them into place."""

    step: int
    tensors: dict[str, NDArray[Any]]
    state: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class CheckpointStore:
    """The last two checkpoints of a run, in one folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def save(self, step: int, tensors: Arrays, state: Mapping[str, Any], arrays: Arrays) -> None:
        """Save `step` whole or not at all, then drop all but the last two.

        Nothing is copied but arrays that are not contiguous. A failure leaves the earlier checkpoints as
        they were, and raises a `CheckpointError`.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            earlier = [self._folder / f"{other:012d}" for other in self.steps() if other < step]
            with _written_beside(self._folder / f"{step:012d}") as folder:
                _write(folder, step, tensors, state, arrays, _linkable(earlier[-1]) if earlier else {})
        except OSError as error:
            place, why = str(self._folder), error.strerror or error
            raise CheckpointError(
                f"Cannot save the checkpoint of step {step} in {place!r}: {why}."
            ) from error
        self._prune(step)

    def load_latest(self) -> Checkpoint | None:
        """Return the newest checkpoint whose files are intact, or None if there never was one.

        Each damaged one on the way is told by a `DamagedCheckpointWarning`; if none is intact, a
        `CheckpointError` is raised.
        """
        steps = self.steps()
        for i, step in enumerate(reversed(steps)):
            try:
                return _read(self._folder / f"{step:012d}", step)
            except _DamageError as damage:
                line = f"The checkpoint of step {step} is damaged ({damage})"
                if i + 1 == len(steps):
                    raise CheckpointError(
                        f"{line}, and no other is left in {str(self._folder)!r}."
                    ) from damage
                older = steps[-i - 2]
                warnings.warn(f"{line}; using that of step {older}.", DamagedCheckpointWarning, stacklevel=2)
        return None

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, oldest first."""
        if not self._folder.is_dir():
            return []
        return sorted(int(path.name) for path in self._folder.iterdir() if path.name.isdigit())

    def _prune(self, step: int) -> None:
        """Keep `step` and the one before; what lies after it is a future that was found damaged."""
        past = [other for other in self.steps() if other <= step]
        for other in set(self.steps()) - set(past[-_KEPT:]):
            # Renamed first: half a checkpoint must not look like one.
            (self._folder / f"{other:012d}").rename(self._folder / f".{other}.{uuid4().hex}.old")
        for path in self._folder.glob(".*"):
            shutil.rmtree(path, ignore_errors=True)


class _DamageError(Exception):
    """What is wrong with a checkpoint's files."""


@contextmanager
def _written_beside(folder: Path) -> Iterator[Path]:
    """Yield a new folder that becomes `folder` if all goes well, and disappears if not."""
    beside = folder.with_name(f".{folder.name}.{uuid4().hex}.partial")
    beside.mkdir()
    try:
        yield beside
        _sync_folder(beside)
        if folder.exists():
            folder.rename(beside.with_suffix(".old"))
        beside.rename(folder)
        _sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _write(
    folder: Path,
    step: int,
    tensors: Arrays,
    state: Mapping[str, Any],
    arrays: Arrays,
    linkable: Mapping[str, tuple[Path, Seal]],
) -> None:
    # safetensors writes the memory of an array as it lies, even if its axes lie in another order.
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    files = {
        _TENSORS: _write_file(folder / _TENSORS, np.frombuffer(_safetensors().save(contiguous), np.uint8)),
        _STATE: _write_file(folder / _STATE, np.frombuffer(_encoded(state), np.uint8)),
    }
    layout = {}
    for i, (name, array) in enumerate(arrays.items()):
        if array.dtype.hasobject:
            raise TypeError(f"The array {name!r} holds Python objects, which only a pickle could store.")
        file = f"array-{i:03d}.bin"
        seal = None if array.flags.writeable else _linked(folder / file, array, linkable.get(name))
        files[file] = seal or _write_file(folder / file, array)
        layout[name] = {"file": file, "dtype": array.dtype.str, "shape": list(array.shape)}
    manifest = {"step": step, "files": files, "arrays": layout}
    sealed = {"crc32": zlib.crc32(_encoded(manifest)), "manifest": manifest}
    _write_file(folder / _MANIFEST, np.frombuffer(_encoded(sealed), np.uint8))


def _linkable(folder: Path) -> dict[str, tuple[Path, Seal]]:
    """Return the files of a checkpoint's arrays and their seals, by the arrays' names."""
    try:
        manifest = _read_manifest(folder)
    except _DamageError:
        return {}
    files = {name: entry["file"] for name, entry in manifest["arrays"].items()}
    return {name: (folder / file, manifest["files"][file]) for name, file in files.items()}


def _linked(path: Path, array: NDArray[Any], earlier: tuple[Path, Seal] | None) -> Seal | None:
    """Make `path` another name of an earlier file with the array's content, if it is one; return its seal."""
    if earlier is None:
        return None
    file, seal = earlier
    if seal != {"bytes": array.nbytes, "crc32": zlib.crc32(_flat(array).data)}:
        return None
    try:
        if _file_checksum(file) != seal["crc32"]:  # damaged since: what is in memory is not
            return None
        path.hardlink_to(file)
    except OSError:  # not every file system has links
        return None
    return seal


def _file_checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _flat(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _write_file(path: Path, array: NDArray[Any]) -> Seal:
    """Write an array's bytes and flush them to disk; return their number and CRC-32."""
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


def _read(folder: Path, step: int) -> Checkpoint:
    manifest = _read_manifest(folder)
    if manifest["step"] != step:
        raise _DamageError(f"{_MANIFEST} is of step {manifest['step']}")
    contents = {name: _read_file(folder / name, seal) for name, seal in manifest["files"].items()}
    arrays = {
        name: contents[entry["file"]].view(np.dtype(entry["dtype"])).reshape(entry["shape"])
        for name, entry in manifest["arrays"].items()
    }
    state = json.loads(contents[_STATE].tobytes())
    return Checkpoint(step, _safetensors().load(contents[_TENSORS].tobytes()), state, arrays)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        sealed = json.loads((folder / _MANIFEST).read_bytes())
        manifest: dict[str, Any] = sealed["manifest"]
        intact = sealed["crc32"] == zlib.crc32(_encoded(manifest))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _DamageError(f"{_MANIFEST} cannot be read") from error
    if not intact:
        raise _DamageError(f"{_MANIFEST} fails its checksum")
    return manifest


def _read_file(path: Path, seal: Seal) -> NDArray[np.uint8]:
    """Return a file's bytes, mapped and not loaded, after checking them against their seal."""
    try:
        size = path.stat().st_size
        if size != seal["bytes"]:
            raise _DamageError(f"{path.name} has {size} bytes instead of {seal['bytes']}")
        content = np.memmap(path, np.uint8, "r").view(np.ndarray) if size else np.empty(0, np.uint8)
    except OSError as error:
        raise _DamageError(f"{path.name} cannot be read") from error
    if zlib.crc32(content.data) != seal["crc32"]:
        raise _DamageError(f"{path.name} fails its checksum")
    return content


def _encoded(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False).encode()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _safetensors() -> Any:
    try:
        return import_module("safetensors.numpy")
    except ImportError as error:
        raise InputError('Checkpoints need safetensors: pip install "ebql[deep]"') from error
