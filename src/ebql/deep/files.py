"""A saved agent: one safetensors file, its description in the header."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from ebql.deep.replay import Array
from ebql.errors import InputError
from ebql.runs import RunFolder, output_folder, write_bytes

_SUFFIX = ".safetensors"
_FORMAT = "ebql agent 1"


def save(path: str | Path, about: Mapping[str, Any], tensors: Mapping[str, Array]) -> Path:
    """Write an agent to `path`, whose suffix is added if it is missing; return the file's path."""
    path = _with_suffix(Path(path))
    output_folder(path.parent)
    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    header = {"format": _FORMAT, "about": json.dumps(about)}
    return write_bytes(path, safetensors_bytes(contiguous, header))


def load(path: str | Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read an agent from a file, or from the newest checkpoint of a run's folder."""
    path = Path(path)
    if path.is_dir():
        folder = RunFolder.open(path)
        checkpoint = folder.checkpoints.load_latest()
        if checkpoint is None:
            raise InputError(f"The run {str(path)!r} has no checkpoint yet.")
        return {**folder.config, "updates": checkpoint.state["updates"]}, checkpoint.tensors
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
    return json.loads(header["about"]), tensors


def _with_suffix(path: Path) -> Path:
    return path if path.suffix == _SUFFIX else path.with_name(path.name + _SUFFIX)
