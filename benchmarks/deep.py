"""How fast the deep agents are, beside Stable-Baselines3 and sbx, and where their time goes.

    python benchmarks/deep.py [--windows 5] [--seconds 3] [--out deep.json]

Everything runs on one thread in one process, the contenders in turn, and each number is the median of
several windows. The clock is the processor's time of this process, which on one thread is the time on a
quiet machine; caches and clock rates are still shared with other processes, so trust the ratios first.
Beside an update's time stands what its matrix products alone would take at the fastest rate that this
processor reached in the same run: the rest is overhead, the optimiser's passes over memory included.
A library that is not installed (pip install stable-baselines3 sbx-rl) is left out. sbx runs on CartPole only,
where its policy needs no convolutions of ours.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from deep_sb3 import sb3_dqn, sbx_dqn
from ebql.deep import fast
from ebql.deep.building import build_learner, torch_settings
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig, RainbowConfig, RainbowEBQLConfig
from ebql.deep.config.base import AgentConfig
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.training.trainer import Training
from ebql.environments import make_lanes
from ebql.runs import versions, write_json

Clock = Callable[[], float]

MEMBERS = (2, 5, 10, 20)
KINDS: dict[str, dict[str, Any]] = {
    "all learn": {"members": "all"},
    "in a cycle": {"members": "cycle"},
    "all learn, the hidden layers shared": {"members": "all", "own_layers": 0},
}
PARTS: dict[str, dict[str, Any]] = {
    "prioritised": {"prioritized": True},
    "dueling": {"dueling": True},
    "noisy": {"noisy": True},
    "51 atoms": {"atoms": 51},
    "200 quantiles": {"quantiles": 200},
    "implicit quantiles": {"implicit_quantiles": 64},
}
PHASES = ("environment", "acting", "remembering", "sampling", "update", "target copy")


@dataclass(frozen=True)
class Task:
    """A contest: an environment and the options that both sides share."""

    environment: str
    options: dict[str, Any]
    goal: float
    """How many times Stable-Baselines3's speed we want."""


SHARED: dict[str, Any] = {
    "epsilon_start": 0.05,
    "epsilon_end": 0.05,
    "update_period": 4,
    "target_period": 1_000,
    "learning_starts": 500,
    "replay_size": 50_000,
}
TASKS = {
    "CartPole, MLP 64-64, batch 64": Task(
        "CartPole-v1", {**SHARED, "torso": "mlp", "hidden": (64, 64), "batch_size": 64}, goal=2.0
    ),
    "MinAtar Breakout, convolution, batch 32": Task(
        "MinAtar/Breakout-v1", {**SHARED, "torso": "minatar", "hidden": (128,), "batch_size": 32}, goal=1.5
    ),
}


def training(config: AgentConfig, environment: str) -> Training:
    """Return a run of `config` that has just begun to learn."""
    lanes = make_lanes(environment, config.envs)
    spec = ObservationSpec.of(lanes.observation_space)
    run = Training(config, build_learner(config, spec, lanes.n_actions), lanes, spec)
    while run.step < config.learning_starts + 100:
        run.advance()
    return run


def in_turn(contenders: dict[str, Callable[[], float]], windows: int) -> dict[str, list[float]]:
    """Call the contenders in turn, the order reversed each time; return what each gave, warm-up dropped."""
    results: dict[str, list[float]] = {name: [] for name in contenders}
    for window in range(windows + 1):
        for name in list(contenders)[:: 1 if window % 2 else -1]:
            result = contenders[name]()
            if window:
                results[name].append(result)
    return results


def speed_of(
    advance: Callable[[int], None], seconds: float, chunk: int = 100, clock: Clock = time.process_time
) -> float:
    """Return agent steps a second over a window of about `seconds`."""
    start, steps = clock(), 0
    while (elapsed := clock() - start) < seconds:
        advance(chunk)
        steps += chunk
    return steps / elapsed


def contest(task: Task, windows: int, seconds: float) -> dict[str, Any]:
    """Return agent steps a second of DQN here, in Stable-Baselines3 and in sbx on the same task."""
    run = training(DQNConfig(**task.options), task.environment)

    def ours(steps: int) -> None:
        for _ in range(steps):
            run.advance()

    contenders = {"ebql": lambda: speed_of(ours, seconds)}
    peers = {"sb3": sb3_dqn} if find_spec("stable_baselines3") else {}
    if find_spec("sbx") and task.options["torso"] == "mlp":
        peers["sbx"] = sbx_dqn
    for name, begin in peers.items():
        advance = begin(task.environment, task.options)
        # A call of their learn() has a price of its own, so it gets long chunks.
        contenders[name] = lambda advance=advance: speed_of(advance, seconds, chunk=1_000)
    results = in_turn(contenders, windows)
    speeds = {name: median(values) for name, values in results.items()}
    ratios = {name: speeds["ebql"] / speeds[name] for name in peers}
    return {"steps_per_second": speeds, "windows": results, "goal": task.goal, "ratios": ratios}


def product_rate() -> float:
    """Return the floating-point operations a second of large matrix products, the best of several."""
    side = 768
    return 2 * side**3 / least_seconds(fastest_product(side), 20)


def fastest_product(side: int) -> Callable[[], Any]:
    """Return the product of two matrices by the library that is faster on this machine: MKL or oneDNN."""
    first, second, out = torch.randn(3, side, side)
    products: list[Callable[[], Any]] = [lambda: torch.mm(first, second, out=out)]
    if fast.HAS_ONEDNN:
        products.append(lambda: torch.ops.mkldnn._linear_pointwise(first, second, None, "none", [], ""))
    return min(products, key=lambda product: least_seconds(product, 5))


def least_seconds(call: Callable[[], Any], calls: int) -> float:
    """Return the processor's time of the shortest of several calls."""
    times = []
    for _ in range(calls):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def operations(run: Training) -> int:
    """Return the floating-point operations of the matrix products in one update."""
    # PyTorch's counter does not know the product that large dense layers are computed by.
    wide_product = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    known = {} if wide_product is None else {wide_product: _operations_of_wide_product}
    with FlopCounterMode(display=False, custom_mapping=known) as counter:
        run._learn()
    return counter.get_total_flops()


def _operations_of_wide_product(
    rows: tuple[int, ...], weight: tuple[int, ...], *_others: Any, **_options: Any
) -> int:
    return 2 * prod(rows) * weight[0]


def update_times(task: Task, windows: int, updates: int) -> dict[str, dict[str, float]]:
    """Return microseconds an update of each agent and ensemble size: `measured`, and of `arithmetic` alone.

    What is measured includes the draw from the replay, and with priorities their renewal.
    """
    configs: dict[str, AgentConfig] = {
        "DQN": DQNConfig(**task.options),
        "DoubleDQN (one member, K=1)": DoubleDQNConfig(**task.options),
        **{f"DoubleDQN, {part}": DoubleDQNConfig(**task.options, **on) for part, on in PARTS.items()},
        "Rainbow": RainbowConfig(**task.options),
        "RainbowEBQL K=5": RainbowEBQLConfig(**task.options),
    }
    for kind, options in KINDS.items():
        configs |= {
            f"EBQL K={k}, {kind}": EBQLConfig(**task.options, **options, ensemble_size=k) for k in MEMBERS
        }

    def timed(run: Training) -> Callable[[], float]:
        def window() -> float:
            start = time.process_time()
            for _ in range(updates):
                run._learn()
            return (time.process_time() - start) / updates * 1e6

        return window

    runs = {name: training(config, task.environment) for name, config in configs.items()}
    measured = in_turn({name: timed(run) for name, run in runs.items()}, windows)
    rate = product_rate()
    return {
        name: {"measured": median(measured[name]), "arithmetic": operations(run) / rate * 1e6}
        for name, run in runs.items()
    }


def where_time_goes(
    config: AgentConfig, environment: str, seconds: float, clock: Clock = time.process_time
) -> dict[str, float]:
    """Return microseconds an agent step of each phase; `loop` is what none of them accounts for."""
    run = training(config, environment)
    spent = dict.fromkeys(PHASES, 0.0)

    def timed(phase: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            start = clock()
            result = call(*arguments)
            spent[phase] += clock() - start
            return result

        return wrapped

    owners: tuple[tuple[Any, str], ...] = (
        (run.lanes, "step"),
        (run, "_act"),
        (run, "_store"),
        (run, "sample"),
        (run.learner, "update"),
        (run.learner, "synchronise"),
    )
    for phase, (owner, name) in zip(PHASES, owners, strict=True):
        setattr(owner, name, timed(phase, getattr(owner, name)))
    start, first = clock(), run.step
    while clock() - start < seconds:
        run.advance()
    total, steps = clock() - start, run.step - first
    spent["loop"] = total - sum(spent.values())
    return {phase: each / steps * 1e6 for phase, each in spent.items()}


def print_contests(results: dict[str, Any]) -> None:
    print(f"{'agent steps a second (DQN)':44}{'ebql':>9}{'SB3':>9}{'sbx':>9}{'SB3':>8}{'sbx':>8}{'goal':>8}")
    nothing = float("nan")
    for name, result in results.items():
        speeds, ratios = result["steps_per_second"], result["ratios"]
        told = "".join(f"{speeds.get(each, nothing):9,.0f}" for each in ("ebql", "sb3", "sbx"))
        compared = "".join(f"{ratios.get(each, nothing):8.2f}" for each in ("sb3", "sbx"))
        print(f"{name:44}{told}{compared}{result['goal']:8.1f}")


def print_updates(results: dict[str, dict[str, dict[str, float]]]) -> None:
    for task, times in results.items():
        print(f"\n{f'one update: {task}':52}{'µs':>8}{'of DoubleDQN':>14}{'arithmetic µs':>16}")
        double = next(each["measured"] for name, each in times.items() if name.startswith("DoubleDQN"))
        for name, each in times.items():
            measured, arithmetic = each["measured"], each["arithmetic"]
            print(f"{name:52}{measured:8,.0f}{measured / double:14.2f}{arithmetic:16,.0f}")


def print_phases(results: dict[str, dict[str, float]]) -> None:
    for name, phases in results.items():
        print(f"\n{f'where a step goes: {name}':52}{'µs':>8}{'share':>14}")
        for phase, each in phases.items():
            print(f"{phase:52}{each:8.1f}{each / sum(phases.values()):14.0%}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--windows", type=int, default=5, help="windows a number is the median of")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a window")
    parser.add_argument("--updates", type=int, default=60, help="updates in a window of update times")
    parser.add_argument("--out", type=Path, help="write the numbers and the versions to this JSON file")
    options = parser.parse_args()
    with torch_settings(DQNConfig(threads=1)):
        measure(options)
    return 0


def measure(options: argparse.Namespace) -> None:
    """Measure everything, print it, and write it if asked."""
    contests = {name: contest(task, options.windows, options.seconds) for name, task in TASKS.items()}
    print_contests(contests)
    updates = {name: update_times(task, options.windows, options.updates) for name, task in TASKS.items()}
    print_updates(updates)
    phases = {
        f"{label}, {name}": where_time_goes(config(**task.options), task.environment, options.seconds)
        for name, task in TASKS.items()
        for label, config in (("DQN", DQNConfig), ("EBQL K=5", EBQLConfig))
    }
    print_phases(phases)
    if options.out:
        tasks = {name: {"environment": t.environment, **t.options} for name, t in TASKS.items()}
        settings = {"windows": options.windows, "seconds": options.seconds, "updates": options.updates}
        content = {
            "versions": versions("stable-baselines3", "sbx-rl", "jax"),
            "settings": settings,
            "tasks": json.loads(json.dumps(tasks)),
            "contests": contests,
            "update_microseconds": updates,
            "step_microseconds": phases,
        }
        print(f"\nwrote {write_json(options.out, content)}")


if __name__ == "__main__":
    sys.exit(main())
