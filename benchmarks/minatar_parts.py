"""What each part of `ebql.deep.fast` that serves MinAtar gains, alone and together.

    python benchmarks/minatar_parts.py [--game Breakout] [--windows 9] [--seconds 1] [--out FILE.json]

The parts: convolutions of set pixels instead of patches, greedy actions in compiled code instead of PyTorch,
and products of dense layers by oneDNN, where it is faster, instead of PyTorch's own. Each contender is a
training with some parts on and the others off. They take turns in one process, on one thread; speeds are
agent steps per second of processor time, and a gain is the median over rounds of the ratio to the training
without any of the parts.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from deep import TASKS, in_turn, speed_of, training
from ebql.deep.building import torch_settings
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig
from ebql.deep.config.base import AgentConfig
from ebql.deep.fast import dense, sparse
from ebql.deep.training import trainer
from ebql.runs import provenance, write_json

OFF: dict[str, list[tuple[Any, str, Any]]] = {
    "set pixels": [(sparse, "applies", lambda *_: False)],
    "compiled actions": [(trainer, "numpy_values", lambda *_, **__: None)],
    "oneDNN": [(dense, "LARGE", float("inf")), (dense, "MKL_KEEPS_UP", True)],
}
"""What to replace, and by what, to do without a part."""
NONE = "none of them"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--game", default="Breakout", help="Breakout, Asterix, SpaceInvaders, …")
    parser.add_argument("--windows", type=int, default=9, help="rounds in which every training has a window")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a window")
    parser.add_argument("--out", type=Path, help="a JSON file to write to")
    options = parser.parse_args()
    task = TASKS["MinAtar Breakout, convolution, batch 32"]
    configs: dict[str, AgentConfig] = {
        "DQN": DQNConfig(**task.options),
        "DoubleDQN": DoubleDQNConfig(**task.options),
        "EBQL K=5": EBQLConfig(**task.options, ensemble_size=5),
        "EBQL K=10": EBQLConfig(**task.options, ensemble_size=10),
    }
    choices = {NONE: set[str](), **{part: {part} for part in OFF}, "all of them": set(OFF)}
    found: dict[str, Any] = {}
    for agent, config in configs.items():
        with torch_settings(config):
            contenders = {
                name: stepping(config, f"MinAtar/{options.game}-v1", parts, options.seconds)
                for name, parts in choices.items()
            }
            windows = in_turn(contenders, options.windows)
        found[agent] = {
            name: {"steps_per_second": median(own), "gain": median(map(ratio, own, windows[NONE]))}
            for name, own in windows.items()
        }
        told = (
            f"{name} {own['steps_per_second']:.0f} ({own['gain']:.2f})" for name, own in found[agent].items()
        )
        print(f"{agent}: {', '.join(told)}")
    if options.out is not None:
        write_json(options.out, {"made_by": provenance(), "game": options.game, "agents": found})


def ratio(ours: float, theirs: float) -> float:
    """Return ours / theirs."""
    return ours / theirs


def stepping(config: AgentConfig, environment: str, parts: set[str], seconds: float) -> Callable[[], float]:
    """Return what measures the speed of a training with these parts."""
    with only(parts):
        run = training(config, environment)

    def advance(steps: int) -> None:
        for _ in range(steps):
            run.advance()

    def window() -> float:
        with only(parts):
            return speed_of(advance, seconds, clock=time.process_time)

    return window


@contextmanager
def only(parts: set[str]) -> Iterator[None]:
    """Do without all other parts within the context."""
    with ExitStack() as stack:
        for part, replaced in OFF.items():
            for owner, name, plain in replaced if part not in parts else ():
                stack.enter_context(mock.patch.object(owner, name, plain))
        yield


if __name__ == "__main__":
    main()
