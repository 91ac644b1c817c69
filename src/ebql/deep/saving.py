"""Saved agents: one safetensors file each, with a description of the agent in its header."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from ebql.deep.config.agents import config_type
from ebql.deep.replay.ring import Array
from ebql.errors import InputError
from ebql.runs import RunFolder, output_folder, require_kinds, write_bytes

_SUFFIX = ".safetensors"
_FORMAT = "ebql agent 1"
_DIGEST = "sha256"
_REQUIRED = ("agent", "environment", "observation", "n_actions", "options")


def save(path: str | Path, description: Mapping[str, Any], tensors: Mapping[str, Array]) -> Path:
    """Write an agent to `path`, adding the suffix `.safetensors` if needed; return the file's path."""
    path = _with_suffix(Path(path))
    output_folder(path.parent)
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    about = json.dumps(description)
    header = {"format": _FORMAT, "about": about, _DIGEST: _digest(about, contiguous)}
    return write_bytes(path, safetensors_bytes(contiguous, header))


def open_run(path: str | Path) -> RunFolder:
    """Open the folder of an agent's run; refuse it if its `config.json` lacks anything needed to resume."""
    folder = RunFolder.open(path)
    _require(folder.config, path, "steps")
    return folder


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read an agent's description and tensors from a file, or from the last checkpoint in a run's folder."""
    path = Path(path)
    if path.is_dir():
        folder = open_run(path)
        checkpoint = folder.checkpoints.load_latest()
        if checkpoint is None:
            raise InputError(f"The run {str(path)!r} has no checkpoint yet.")
        progress = {"updates": checkpoint.state["updates"], "trained_steps": checkpoint.state["step"]}
        return {**folder.config, **progress}, checkpoint.tensors
    path = path if path.is_file() else _with_suffix(path)
    if not path.is_file():
        raise InputError(f"There is no saved agent at {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError) as error:
        raise InputError(f"{str(path)!r} cannot be read as a saved agent: {error}") from error
    if header.get("format") != _FORMAT:
        raise InputError(f"{str(path)!r} is not a saved agent.")
    about = header.get("about", "")
    if (
        header.get(_DIGEST, digest := _digest(about, tensors)) != digest
    ):  # missing in files written by version 0.1
        raise InputError(f"{str(path)!r} is damaged: its content does not match its checksum.")
    try:
        description = json.loads(about)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} does not describe an agent: its header cannot be read.") from error
    _require(description, path)
    return description, tensors


def _digest(about: str, tensors: Mapping[str, Array]) -> str:
    """Return the SHA-256 of an agent's description and tensors, as hexadecimal digits."""
    digest = sha256(about.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _require(description: Any, path: str | Path, *also: str) -> None:
    known = description if isinstance(description, dict) else {}
    missing = [key for key in (*_REQUIRED, *also) if key not in known]
    if missing:
        raise InputError(f"{str(path)!r} does not describe an agent: it lacks {', '.join(missing)}.")
    require_kinds(description, f"{str(path)!r} does not describe an agent: it")
    config_type(description["agent"])


def _with_suffix(path: Path) -> Path:
    return path if path.suffix == _SUFFIX else path.with_name(path.name + _SUFFIX)
