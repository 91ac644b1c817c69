"""How fast dense layers are with weights stored by input, for MKL, and by output, for oneDNN.

    python benchmarks/dense_layout.py [--rounds 40] [--threads 1] [--out dense_layout.json]

Times what an update does with the layers after the encoder: a pass of s and s' together, the gradients, and a
pass of s' through the target members. Both layouts run in turn in one process; the ratio is that of medians.
A number above 1 says that the layout by input is faster.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import torch

from ebql.deep.fast import dense
from ebql.deep.networks.layers import MemberLinear, MemberMLP
from ebql.runs import provenance, write_json

ROWS, ACTIONS = 32, 6
NETWORKS = {
    "MinAtar, K = 2": (2, 1024, 128),
    "MinAtar, K = 5": (5, 1024, 128),
    "MinAtar, K = 10": (10, 1024, 128),
    "atari-100k, K = 5": (5, 576, 512),
    "Nature, K = 1": (1, 3136, 512),
    "Nature, K = 5": (5, 3136, 512),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="updates of each layout")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch's threads")
    parser.add_argument("--out", type=Path, help="a JSON file to write to")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found: dict[str, Any] = {}
    for name, sizes in NETWORKS.items():
        found[name] = own = compared(*sizes, options.rounds)
        print(
            f"{name}: by input {own['by input']:.0f} µs, by output {own['by output']:.0f}: {own['ratio']:.2f}"
        )
    if options.out is not None:
        write_json(options.out, {"made_by": provenance(), "threads": options.threads, "layers": found})


def compared(n_members: int, n_in: int, n_hidden: int, rounds: int) -> dict[str, float]:
    """Return the microseconds of both layouts, and by output / by input."""
    layers = {}
    for layout, large in (("by input", float("inf")), ("by output", 2.0**17)):
        with mock.patch.object(dense, "LARGE", large):
            generator = torch.Generator().manual_seed(0)
            sizes = (n_in, n_hidden, ACTIONS)
            layers[layout] = [MemberMLP(n_members, sizes, generator, activate_last=False) for _ in range(2)]
        for layer in layers[layout][1].modules():
            if isinstance(layer, MemberLinear):
                layer.pack(ROWS)
    features, others = torch.rand(1, ROWS, n_in, requires_grad=True), torch.rand(1, ROWS, n_in)
    times: dict[str, list[float]] = {layout: [] for layout in layers}
    for _ in range(rounds + 5):
        for layout, (online, target) in layers.items():
            with mock.patch.object(dense, "MKL_KEEPS_UP", layout == "by input"):
                start = time.perf_counter()
                values, _ = online.both(features, others)
                torch.autograd.grad(values.sum(), [features, *online.parameters()])
                with torch.no_grad():
                    target(others)
                times[layout].append((time.perf_counter() - start) * 1e6)
    medians = {layout: median(own[5:]) for layout, own in times.items()}
    return {**medians, "ratio": medians["by output"] / medians["by input"]}


if __name__ == "__main__":
    main()
