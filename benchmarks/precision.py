"""Whether bfloat16 is faster than float32 on this processor: products of our networks' sizes, and updates.

    python benchmarks/precision.py
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 python benchmarks/precision.py

The second form leaves out AMX. Some virtual machines announce AMX but do not allow it; there the first form
ends with an illegal instruction. Everything runs on one thread, and each number is the fastest of several
windows. "Converted" includes turning the float32 factors into bfloat16, as training must do with weights that
an optimiser keeps in float32. Updates are whole ones, on random images, as `--precision` changes them; both
precisions run in turn.
"""

import time
from collections.abc import Callable

import numpy as np
import torch

from ebql.deep.agents import AGENTS
from ebql.deep.building import build_learner
from ebql.deep.config.presets import preset_config
from ebql.deep.networks.layers import MemberLinear
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.replay.ring import Transitions

SIZES = {
    "MinAtar, EBQL K=5: 32x1024 by 1024x640": (32, 1024, 640),
    "MinAtar, DQN: 32x1024 by 1024x128": (32, 1024, 128),
    "Atari, EBQL K=5: 32x3136 by 3136x2560": (32, 3136, 2560),
    "classic control: 128x256 by 256x256": (128, 256, 256),
}
UPDATES = {
    "minatar": ObservationSpec((10, 10, 4), "bool"),
    "atari-100k": ObservationSpec((4, 84, 84), "uint8"),
}
"""The observations of presets."""
SET_PIXELS = 0.06  # as in MinAtar
WINDOWS, REPEATS, UPDATES_A_WINDOW, ACTIONS = 7, 60, 10, 6


def microseconds(product: Callable[[], torch.Tensor]) -> float:
    """Return the processor's time of one call, the least of several windows after a warm-up."""
    times = []
    for _ in range(WINDOWS + 1):
        start = time.process_time()
        for _ in range(REPEATS):
            product()
        times.append((time.process_time() - start) / REPEATS * 1e6)
    return min(times[1:])


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}; microseconds a product")
    print(f"{'product':45s}{'float32':>9s}{'bfloat16':>10s}{'converted':>11s}")
    for name, (rows, n_in, n_out) in SIZES.items():
        features, layer = torch.randn(1, rows, n_in), MemberLinear(1, n_in, n_out, torch.Generator())
        rows_of, weight = features[0], layer.weight.detach()[0].contiguous()
        low_rows, low_weight = rows_of.bfloat16(), weight.bfloat16()
        with torch.no_grad():
            times = (
                microseconds(lambda a=features, b=layer: b(a)),
                microseconds(lambda a=low_rows, b=low_weight: a @ b),
                microseconds(lambda a=rows_of, b=weight: a.bfloat16() @ b.bfloat16()),
            )
        print(f"{name:45s}{times[0]:9.0f}{times[1]:10.0f}{times[2]:11.0f}")
    print(f"{'update':45s}{'float32':>9s}{'bfloat16':>10s}{'ratio':>11s}")
    for preset, spec in UPDATES.items():
        for name in ("dqn", "ebql"):
            full, low = updates(name, preset, spec)
            print(f"{f'{preset}, {name}':45s}{full:9.0f}{low:10.0f}{low / full:11.2f}")


def updates(name: str, preset: str, spec: ObservationSpec) -> tuple[float, float]:
    """Return the microseconds of an update in float32 and in bfloat16."""
    config = preset_config(AGENTS[name].config_type, preset)
    learners = [
        build_learner(config.override(precision=precision), spec, ACTIONS)
        for precision in ("float32", "bfloat16")
    ]
    rng, rows = np.random.default_rng(0), config.batch_size
    now, after = (rng.random((2, rows, *spec.shape)) < SET_PIXELS).astype(spec.dtype)
    rewards = rng.random(rows, np.float32)
    masks = np.empty((rows, 0), np.bool_)
    batch = Transitions(now, rng.integers(0, ACTIONS, rows), rewards, 0.99 * rewards, after, masks)
    times: list[list[float]] = [[], []]
    for _ in range(WINDOWS + 1):
        for own, learner in zip(times, learners, strict=True):
            start = time.process_time()
            for _ in range(UPDATES_A_WINDOW):
                learner.update(batch)
            own.append((time.process_time() - start) / UPDATES_A_WINDOW * 1e6)
    return min(times[0][1:]), min(times[1][1:])


if __name__ == "__main__":
    main()
