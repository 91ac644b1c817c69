"""What it costs that the two checkpoints of a run share no file: bytes and seconds of each checkpoint.

Three ways to save an array that never changes, such as a full segment of frames: link it to the file of the
checkpoint before, so that both checkpoints depend on one file; link it to the one before that, as runs do; or
write it every time. The replay has the proportions of the Atari preset: a quarter of a million frames is new
at each checkpoint of a replay of one million. Writes `results/benchmarks/checkpoints.json`.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from ebql.runs import CheckpointStore, checkpoints, provenance, write_json

OUT = Path(__file__).parent.parent / "results" / "benchmarks" / "checkpoints.json"
SEGMENTS, NEW, BYTES = 64, 16, 2 << 20  # segments of the replay, new ones at each checkpoint, bytes of each
WARM_UP, MEASURED = 4, 6  # checkpoints

unshared = checkpoints._linkable
WAYS: dict[str, Callable[..., Any]] = {
    "linked to the checkpoint before": lambda earlier: unshared(list(earlier[-1:]) * 2),
    "linked to the one before that (as runs do)": unshared,
    "never linked": lambda _: {},
}


def segments() -> list[np.ndarray]:
    """Return all segments that the replay holds at one time or another."""
    rng, made = np.random.default_rng(0), []
    for _ in range(SEGMENTS + NEW * (WARM_UP + MEASURED)):
        made.append(rng.integers(0, 256, BYTES, np.uint8))
        made[-1].flags.writeable = False
    return made


def measure(linkable: Callable[..., Any], folder: Path, held: list[np.ndarray]) -> dict[str, float]:
    """Save checkpoints of a moving replay; return bytes and seconds of one, and the bytes that both take."""
    written, seconds = [0], []
    write_file = checkpoints._write_file

    def counting(path: Path, array: np.ndarray) -> Any:
        written[-1] += array.nbytes
        return write_file(path, array)

    store = CheckpointStore(folder)
    with patch.multiple(checkpoints, _linkable=linkable, _write_file=counting):
        for step in range(WARM_UP + MEASURED):
            first = NEW * step
            arrays = {str(i): held[i] for i in range(first, first + SEGMENTS)}
            began = time.perf_counter()
            store.save(step, {}, {}, arrays)
            seconds.append(time.perf_counter() - began)
            written.append(0)
    files = {path.stat().st_ino: path.stat().st_size for path in folder.rglob("*.bin")}
    return {
        "written_mb": statistics.mean(written[WARM_UP:-1]) / 1e6,
        "seconds": statistics.median(seconds[WARM_UP:]),
        "on_disk_mb": sum(files.values()) / 1e6,
    }


def main() -> None:
    """Measure each way in a folder on the disk of `--folder`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where the checkpoints are written")
    parser.add_argument("--out", type=Path, default=OUT)
    wanted = parser.parse_args()
    os.sync()
    held, rows = segments(), {}
    for way, linkable in WAYS.items():
        with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
            rows[way] = measure(linkable, Path(folder) / "checkpoints", held)
        print(way, json.dumps(rows[way]), flush=True)
    replay = {"replay_mb": SEGMENTS * BYTES / 1e6, "new_mb": NEW * BYTES / 1e6}
    write_json(wanted.out, {"made_by": provenance(), **replay, "ways": rows})


if __name__ == "__main__":
    main()
