"""How fast the agents are on Atari's Pong, beside Stable-Baselines3, and how near to what arithmetic allows.

    python benchmarks/atari.py [--windows 30] [--seconds 0.5] [--threads 2] [--authors DIR] [--out atari.json]

Everyone plays Pong and makes one update of 32 transitions every 4 agent steps, on two threads, with the same
network, optimiser and exploration; only Rainbow has its own. The contenders take turns in one process, in
many short windows of real time: a machine that others share has slow spells of seconds to minutes, which then
hit everyone. A ratio is the median of the ratios within each round; other numbers are medians over the
windows. `load` tells how busy the machine was. With --threads 1 the clock is the processor's time of this
process, which other work disturbs little.

The roofline is an update's time over what its floating-point operations alone would take at the rate of a
large matrix product, which is measured between the updates: 1 is perfect. Stable-Baselines3 needs OpenCV for
Atari (pip install "stable-baselines3[extra]"); without both, its column stays empty. --authors adds the code
of the paper's authors, with one environment (atari_authors.py says what DIR must hold); it needs OpenCV, too.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from atari_authors import KINDS as AUTHORS_KINDS
from atari_authors import authors_agent, lacking
from atari_sb3 import sb3_atari_dqn
from deep import (
    Clock,
    fastest_product,
    in_turn,
    operations,
    print_phases,
    speed_of,
    training,
    where_time_goes,
)
from ebql.deep.building import torch_settings
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig, RainbowConfig
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.presets import preset_config, preset_of
from ebql.deep.training.trainer import Training
from ebql.runs import versions, write_json

GAME = "ALE/Pong-v5"
KINDS: dict[str, type[AgentConfig]] = {
    "DQN": DQNConfig,
    "DoubleDQN": DoubleDQNConfig,
    "EBQL K=5": EBQLConfig,
    "Rainbow": RainbowConfig,
}
LANES = (1, 8)
PROFILED = (("DQN", 1), ("DQN", 8), ("EBQL K=5", 8))
GOALS = {
    "DQN over SB3": 1.6,
    "over the authors": 1.8,
    "EBQL K=5 over DoubleDQN, an update": 1.9,
    "roofline": 1.5,
}
CHANGES: dict[str, Any] = {
    "learning_starts": 400,
    "replay_size": 10_000,  # Stable-Baselines3 keeps every observation twice, uncompressed
    "target_period": 1_000,
    "epsilon_start": 0.1,
}
SIDE = 1536  # of the matrices whose product is the measure of the machine


def config_of(kind: str, envs: int, threads: int) -> AgentConfig:
    """Return the paper's options for this agent, with a replay that is soon ready to learn from."""
    config = preset_config(KINDS[kind], preset_of(GAME, KINDS[kind]))
    return config.override(**CHANGES, envs=envs, threads=threads)


def steps_per_second(options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Return, for each number of environments, every contender's agent steps a second in each window."""
    results = {}
    for envs in LANES:
        contenders = {kind: our_speed(config_of(kind, envs, options.threads), options) for kind in KINDS}
        if find_spec("stable_baselines3") and find_spec("cv2"):
            advance = sb3_atari_dqn(config_of("DQN", envs, options.threads))
            contenders["SB3"] = lambda advance=advance: speed(advance, options)
        if options.authors and envs == 1:
            for kind in AUTHORS_KINDS:
                advance = authors_agent(kind, config_of(kind, envs, options.threads), options.authors)
                contenders[authors_name(kind)] = lambda advance=advance: speed(advance, options)
        results[f"{envs} environment{'s' if envs > 1 else ''}"] = in_turn(contenders, options.windows)
    return results


def our_speed(config: AgentConfig, options: argparse.Namespace) -> Callable[[], float]:
    run = training(config, GAME)

    def advance(steps: int) -> None:
        end = run.step + steps
        while run.step < end:
            run.advance()

    return lambda: speed(advance, options)


def speed(advance: Callable[[int], None], options: argparse.Namespace) -> float:
    return speed_of(advance, options.seconds, chunk=32, clock=options.clock)


def update_seconds(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return, for each agent, seconds an update takes, its operations, and the roofline between them."""
    runs = {kind: training(config_of(kind, 8, options.threads), GAME) for kind in KINDS}
    contenders = {kind: timed_updates(run, options.seconds / 2, options.clock) for kind, run in runs.items()}
    contenders["product"] = timed_products(options.seconds / 4, options.clock)
    windows = in_turn(contenders, options.windows)
    products, double = windows["product"], windows["DoubleDQN"]
    results: dict[str, dict[str, Any]] = {}
    for kind, run in runs.items():
        flop = operations(run)
        results[kind] = {
            "seconds": median(windows[kind]),
            "of_double_dqn": median_ratio(windows[kind], double),
            "flop": flop,
            "peak_flop_per_second": 2 * SIDE**3 / median(products),
            "roofline": median_ratio(windows[kind], products) * 2 * SIDE**3 / flop,
            "windows": windows[kind],
        }
    return results


def median_ratio(ours: list[float], theirs: list[float]) -> float:
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def timed_updates(run: Training, seconds: float, clock: Clock) -> Callable[[], float]:
    def window() -> float:
        times: list[float] = []
        while sum(times) < seconds:
            batch, _ = run.sample()
            start = clock()
            run.learner.update(batch)
            times.append(clock() - start)
        return median(times)

    return window


def timed_products(seconds: float, clock: Clock) -> Callable[[], float]:
    product = fastest_product(SIDE)

    def window() -> float:
        times: list[float] = []
        while sum(times) < seconds:
            start = clock()
            product()
            times.append(clock() - start)
        return median(times)

    return window


def print_speeds(results: dict[str, dict[str, list[float]]]) -> None:
    print(f"{'agent steps a second':24}{'SB3 DQN':>10}" + "".join(f"{kind:>12}" for kind in KINDS), end="")
    print(f"{'DQN over SB3':>15}{'goal':>7}")
    for name, windows in results.items():
        speeds = {kind: median(each) for kind, each in windows.items()}
        sb3 = speeds.get("SB3", float("nan"))
        print(f"{name:24}{sb3:10.0f}" + "".join(f"{speeds[kind]:12.0f}" for kind in KINDS), end="")
        print(f"{over_sb3(windows):15.2f}{GOALS['DQN over SB3']:7.1f}")


def over_sb3(windows: dict[str, list[float]]) -> float:
    return median_ratio(windows["DQN"], windows["SB3"]) if "SB3" in windows else float("nan")


def authors_name(kind: str) -> str:
    return f"authors' {kind}"


def over_authors(speeds: dict[str, dict[str, list[float]]]) -> dict[str, float]:
    """Return, for each agent of the authors, how many times as fast ours is with one environment."""
    windows = speeds["1 environment"]
    names = {kind: authors_name(kind) for kind in AUTHORS_KINDS if authors_name(kind) in windows}
    return {kind: median_ratio(windows[kind], windows[name]) for kind, name in names.items()}


def print_authors(speeds: dict[str, dict[str, list[float]]]) -> None:
    for kind, ratio in over_authors(speeds).items():
        theirs = median(speeds["1 environment"][authors_name(kind)])
        print(f"authors' {kind}: {theirs:.0f} steps a second; ours {ratio:.2f} times as fast", end="")
        print(f" (goal {GOALS['over the authors']})")


def print_updates(results: dict[str, dict[str, Any]]) -> None:
    rate = results["DQN"]["peak_flop_per_second"]
    print(f"\nlarge matrix products: {rate / 1e9:.0f} GFLOP/s")
    print(f"{'one update':24}{'ms':>10}{'of DoubleDQN':>14}{'GFLOP':>8}{'arithmetic ms':>15}{'roofline':>10}")
    for kind, each in results.items():
        seconds, flop = each["seconds"], each["flop"]
        print(f"{kind:24}{1e3 * seconds:10.1f}{each['of_double_dqn']:14.2f}{flop / 1e9:8.2f}", end="")
        print(f"{1e3 * flop / rate:15.1f}{each['roofline']:10.2f}")
    ratio = GOALS["EBQL K=5 over DoubleDQN, an update"]
    print(f"goals: EBQL at most {ratio} of DoubleDQN, roofline at most {GOALS['roofline']}")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything and print it; return the numbers."""
    speeds = steps_per_second(options)
    print_speeds(speeds)
    print_authors(speeds)
    updates = update_seconds(options)
    print_updates(updates)
    phases = {
        f"{kind}, {envs} at once": where_time_goes(
            config_of(kind, envs, options.threads), GAME, 8 * options.seconds, options.clock
        )
        for kind, envs in PROFILED
    }
    print_phases(phases)
    return {
        "goals": GOALS,
        "dqn_over_sb3": {name: over_sb3(windows) for name, windows in speeds.items()},
        "over_authors": over_authors(speeds),
        "steps_per_second": {
            name: {kind: median(each) for kind, each in windows.items()} for name, windows in speeds.items()
        },
        "steps_per_second_windows": speeds,
        "update": updates,
        "step_microseconds": phases,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--windows", type=int, default=30, help="rounds in which everyone has a window")
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a window")
    parser.add_argument("--threads", type=int, default=2, help="threads of everyone's matrix products")
    parser.add_argument("--authors", type=Path, help="folder with the code of the paper's authors")
    parser.add_argument("--out", type=Path, help="write the numbers and the versions to this JSON file")
    options = parser.parse_args()
    if options.authors and (lack := lacking(options.authors)):
        parser.error(lack)
    options.clock = time.process_time if options.threads == 1 else time.perf_counter
    load = [os.getloadavg()]
    with torch_settings(DQNConfig(threads=options.threads)):
        results = measure(options)
    load.append(os.getloadavg())
    print(f"\nload averages before and after: {load[0]}, {load[1]}; processors: {os.cpu_count()}")
    if options.out:
        settings = {"windows": options.windows, "seconds": options.seconds, "threads": options.threads}
        content = {
            "versions": versions("stable-baselines3", "ale-py"),
            "settings": {**settings, "game": GAME, "preset": "atari-paper", "changes": CHANGES},
            "load": load,
            **results,
        }
        print(f"wrote {write_json(options.out, content)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
