"""A saved agent: one safetensors file, its description in the header."""

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

_SUFFIX = ".safetensors"
_FORMAT = "ebql agent 1"
_NEEDED = ("agent", "environment", "observation", "n_actions", "options")


def save(path: str | Path, about: Mapping[str, Any], tensors: Mapping[str, Array]) -> Path:
    """Write an agent to `path`, whose suffix is added if it is missing; return the file's path."""
    path = _with_suffix(Path(path))
    output_folder(path.parent)
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    header = {"format": _FORMAT, "about": json.dumps(about)}
    return write_bytes(path, safetensors_bytes(contiguous, header))


def open_run(path: str | Path) -> RunFolder:
    """Open the folder of an agent's run; refuse one whose `config.json` does not say enough to go on."""
    folder = RunFolder.open(path)
    _require(folder.config, path, "steps")
    return folder


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read an agent from a file, or from the newest checkpoint of a run's folder."""
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
        raise InputError(f"There is no saved agent {str(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError) as error:
        raise InputError(f"{str(path)!r} cannot be read as a saved agent: {error}") from error
    if header.get("format") != _FORMAT:
        raise InputError(f"{str(path)!r} is not a saved agent.")
    try:
        about = json.loads(header.get("about", ""))
    except ValueError as error:
        raise InputError(f"{str(path)!r} describes no agent: its header cannot be read.") from error
    _require(about, path)
    return about, tensors


def _require(about: Any, path: str | Path, *also: str) -> None:
    missing = [key for key in (*_NEEDED, *also) if not isinstance(about, dict) or key not in about]
    if missing:
        raise InputError(f"{str(path)!r} describes no agent: it does not say {', '.join(missing)}.")
    require_kinds(about, f"{str(path)!r} describes no agent: it")
    config_type(about["agent"])


def _with_suffix(path: Path) -> Path:
    return path if path.suffix == _SUFFIX else path.with_name(path.name + _SUFFIX)
