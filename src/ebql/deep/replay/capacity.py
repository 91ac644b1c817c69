"""Chooses the replay of a run, and checks that it will fit into memory."""

import math
import os
from pathlib import Path

import numpy as np

from ebql.deep.config.base import AgentConfig
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay.frames import FrameReplay
from ebql.deep.replay.ring import Replay
from ebql.environments import Lanes
from ebql.environments.atari.lanes import AtariLanes
from ebql.errors import InputError

COMPRESSED_FRAME = 1_200
"""Assumed bytes of a compressed Atari frame; most games need at most half of it."""

_COLUMN_BYTES = 24  # of a transition's action, reward and discount, with a margin


def make_replay(
    config: AgentConfig, spec: ObservationSpec, lanes: Lanes, n_masks: int
) -> Replay | FrameReplay:
    """Return the replay for these lanes: a `FrameReplay` if observations are stacks of frames.

    A replay that will not fit into memory is refused now rather than when it fills up, hours later. The lanes
    have been reset, so it is known whether they have action masks. A log of diversity is refused with them,
    because the replay keeps those of the next states only.
    """
    stacked = isinstance(lanes, AtariLanes)
    n_actions = None if lanes.masks is None else lanes.n_actions
    if n_actions is not None and config.ensemble().log_diversity:
        raise InputError(
            "log-diversity does not work with action masks, because illegal actions could count as greedy: "
            "turn log-diversity or action-masks off."
        )
    _require_memory(config, spec, n_masks + (n_actions or 0), stacked=stacked)
    if stacked:
        return FrameReplay(config.replay_size, spec, n_masks, n_step=config.n_step, compress=config.compress)
    return Replay(config.replay_size, spec, n_masks, n_actions)


def replay_bytes(config: AgentConfig, spec: ObservationSpec, n_masks: int, *, stacked: bool) -> int:
    """Return the approximate bytes of a full replay; `n_masks` are the bytes of masks a transition has."""
    if stacked:
        height, width, frames = spec.shape
        numbers = 2 * frames * np.dtype(np.int32).itemsize
        observations = (COMPRESSED_FRAME if config.compress else height * width) + numbers
    else:
        observations = 2 * math.prod(spec.shape) * np.dtype(spec.dtype).itemsize
    return config.replay_size * (observations + _COLUMN_BYTES + n_masks)


def available_memory() -> int | None:
    """Return the bytes that this process may still allocate; None if the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return _physical_memory()
    try:  # a container's own limit
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):
        return available
    return min(available, max(limit - used, 0))


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _require_memory(config: AgentConfig, spec: ObservationSpec, n_masks: int, *, stacked: bool) -> None:
    needed = replay_bytes(config, spec, n_masks, stacked=stacked)
    available = available_memory()
    if available is None or needed <= available:
        return
    remedy = f"--replay-size {int(config.replay_size * 0.8 * available / needed)}"
    compressed = config.override(compress=True)
    if replay_bytes(compressed, spec, n_masks, stacked=stacked) <= available:
        remedy += " or --compress"
    raise InputError(
        f"A replay of {config.replay_size:,} transitions needs about {needed / 1e9:.1f} GB, "
        f"but only {available / 1e9:.1f} GB of memory is free: use {remedy}."
    )
