"""What an update on MinAtar spends its time on, besides its matrix products.

    python benchmarks/update_parts.py [--updates 300] [--windows 5] [--out update_parts.json]

PyTorch's profiler adds up the time of each operator without those that it calls. Operators are grouped:
products, moving numbers in memory, the optimiser, and all others. What is left of the update's time is
Python: our own code, and the calls. The profiler makes every call longer, so trust the shares first; the
first column is the update's time without it. Everything runs on one thread, the agents in turn.
"""

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from torch.profiler import ProfilerActivity, profile

from deep import TASKS, Clock, in_turn, training
from ebql.deep.building import torch_settings
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig, RainbowConfig
from ebql.deep.config.base import AgentConfig
from ebql.deep.training.trainer import Training
from ebql.runs import provenance, write_json

GROUPS: dict[str, tuple[str, ...]] = {
    "products": ("aten::bmm", "aten::baddbmm", "aten::mm", "aten::addmm", "mkldnn::_linear_pointwise"),
    "moving": (
        "aten::copy_",
        "aten::cat",
        "aten::index",
        "aten::gather",
        "aten::scatter_add_",
        "aten::fill_",
    ),
    "optimiser": ("aten::_fused_adam_", "aten::dot", "aten::_foreach_add_"),
}
OTHERS, PYTHON = "other operators", "Python"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--updates", type=int, default=300, help="updates of a window")
    parser.add_argument("--windows", type=int, default=5, help="windows of each agent; medians are told")
    parser.add_argument("--out", type=Path, help="a JSON file to write to")
    options = parser.parse_args()
    task = TASKS["MinAtar Breakout, convolution, batch 32"]
    configs: dict[str, AgentConfig] = {
        "DQN": DQNConfig(**task.options),
        "DoubleDQN": DoubleDQNConfig(**task.options),
        "EBQL K=5": EBQLConfig(**task.options, ensemble_size=5),
        "Rainbow": RainbowConfig(**task.options),
    }
    with torch_settings(next(iter(configs.values()))):
        runs = {name: training(config, task.environment) for name, config in configs.items()}
        plain = in_turn(
            {name: lambda run=run: update_time(run, options.updates) for name, run in runs.items()},
            options.windows,
        )
        found = {
            name: {"microseconds": median(plain[name]), **parts(run, options.updates)}
            for name, run in runs.items()
        }
    for name, own in found.items():
        shares = ", ".join(f"{part} {own[part]:.0%}" for part in (*GROUPS, OTHERS, PYTHON))
        print(f"{name}: {own['microseconds']:.0f} µs: {shares}; {own['calls']:.0f} calls of operators")
    if options.out is not None:
        write_json(options.out, {"made_by": provenance(), "updates": found})


def update_time(run: Training, updates: int, clock: Clock = time.process_time) -> float:
    """Return the microseconds of one update with its draw from the replay."""
    start = clock()
    for _ in range(updates):
        run._learn()
    return (clock() - start) / updates * 1e6


def parts(run: Training, updates: int) -> Mapping[str, float]:
    """Return the share of each group in the time of profiled updates, and the operators' calls of one."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        # The profiler's clock goes on while other processes have the processor.
        total = update_time(run, updates, time.perf_counter) * updates
    events: Any = [
        event for event in profiler.key_averages() if "::" in event.key and not event.is_user_annotation
    ]
    own = {event.key: event.self_cpu_time_total for event in events}
    shares = {name: sum(own.get(key, 0.0) for key in keys) / total for name, keys in GROUPS.items()}
    named = {key for keys in GROUPS.values() for key in keys}
    shares[OTHERS] = sum(spent for key, spent in own.items() if key not in named) / total
    shares[PYTHON] = 1 - sum(shares.values())
    return {**shares, "calls": sum(event.count for event in events) / updates}


if __name__ == "__main__":
    main()
