"""Whether products in bfloat16 are faster than in float32 on this processor, for the sizes of our networks.

    python benchmarks/precision.py
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 python benchmarks/precision.py

The second form leaves out AMX. Some virtual machines announce AMX but do not allow it; there the first form
ends with an illegal instruction. Everything runs on one thread, and each number is the fastest of several
windows. "Converted" includes turning the float32 factors into bfloat16, as training must do with weights that
an optimiser keeps in float32.
"""

import time
from collections.abc import Callable

import torch

SIZES = {
    "MinAtar, EBQL K=5: 32x1024 by 1024x640": (32, 1024, 640),
    "MinAtar, DQN: 32x1024 by 1024x128": (32, 1024, 128),
    "Atari, EBQL K=5: 32x3136 by 3136x2560": (32, 3136, 2560),
    "classic control: 128x256 by 256x256": (128, 256, 256),
}
WINDOWS, REPEATS = 7, 60


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
        features, weight = torch.randn(rows, n_in), torch.randn(n_in, n_out)
        low_features, low_weight = features.bfloat16(), weight.bfloat16()
        times = (
            microseconds(lambda a=features, b=weight: a @ b),
            microseconds(lambda a=low_features, b=low_weight: a @ b),
            microseconds(lambda a=features, b=weight: a.bfloat16() @ b.bfloat16()),
        )
        print(f"{name:45s}{times[0]:9.0f}{times[1]:10.0f}{times[2]:11.0f}")


if __name__ == "__main__":
    main()
