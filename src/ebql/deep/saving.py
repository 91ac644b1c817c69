"""Saved agents: one safetensors file each, with a description of the agent in its header."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from ebql.deep.config.agents import config_type
from ebql.deep.replay.ring import Array
from ebql.errors import InputError
from ebql.runs import RunFolder, output_folder, require_kinds, write_bytes
from ebql.runs.files import decoded
from ebql.runs.seals import ACCEPT, arrays_seal

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
    header = {"format": _FORMAT, "about": about, _DIGEST: arrays_seal(contiguous, about)}
    return write_bytes(path, safetensors_bytes(contiguous, header))


def open_run(path: str | Path, *, accept_changes: bool = False) -> RunFolder:
    """Open the folder of an agent's run; refuse it if its `config.json` lacks anything needed to resume."""
    folder = RunFolder.open(path, accept_changes=accept_changes)
    _require(folder.config, path, "steps")
    return folder


def load(path: str | Path, *, accept_changes: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read an agent's description and tensors from a file, or from the last checkpoint in a run's folder.

    Of a checkpoint only the weights are read. A file that was changed after it was written is refused, unless
    changes are accepted.
    """
    path = Path(path)
    if path.is_dir():
        folder = open_run(path, accept_changes=accept_changes)
        checkpoint = folder.checkpoints.load_latest(weights_only=True)
        if checkpoint is None:
            raise InputError(f"The run {str(path)!r} has no checkpoint yet.")
        progress = {"updates": checkpoint.state.get("updates"), "trained_steps": checkpoint.step}
        description = {**folder.config, **progress}
        _require(description, path)
        return description, checkpoint.tensors
    path = path if path.is_file() else _with_suffix(path)
    if not path.is_file():
        raise InputError(f"There is no saved agent at {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise InputError(f"{str(path)!r} cannot be read as a saved agent: {error}") from error
    if header.get("format") != _FORMAT:
        raise InputError(f"{str(path)!r} is not a saved agent.")
    about = header.get("about", "")
    # Agents that were saved by version 0.1 have no checksum.
    if _DIGEST in header and header[_DIGEST] != arrays_seal(tensors, about) and not accept_changes:
        change = "was changed after it was written: its content does not match its checksum"
        raise InputError(f"{str(path)!r} {change}. {ACCEPT}")
    try:
        description = decoded(about)
    except ValueError as error:
        raise InputError(f"{str(path)!r} does not describe an agent: its header cannot be read.") from error
    _require(description, path)
    return description, tensors


def _require(description: Any, path: str | Path, *also: str) -> None:
    known = description if isinstance(description, dict) else {}
    missing = [key for key in (*_REQUIRED, *also) if key not in known]
    if missing:
        raise InputError(f"{str(path)!r} does not describe an agent: it lacks {', '.join(missing)}.")
    require_kinds(description, f"{str(path)!r} does not describe an agent: it")
    config_type(description["agent"])


def _with_suffix(path: Path) -> Path:
    return path if path.suffix == _SUFFIX else path.with_name(path.name + _SUFFIX)
