"""What each part of `ebql.deep.fast` gains on MinAtar or Atari, alone and together.

    python benchmarks/fast_parts.py [--on atari-100k] [--game Pong] [--windows 9] [--out FILE.json]

The parts on MinAtar: convolutions of set pixels instead of patches, and greedy actions in compiled code
instead of PyTorch. On both: products of dense layers by oneDNN, where it is faster, instead of PyTorch's own.
Each contender is a training with some parts on and the others off. They take turns in one process, on one
thread; speeds are agent steps per second of processor time, and a gain is the median over rounds of the ratio
to the training without any of the parts.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from deep import TASKS, in_turn, speed_of, training
from ebql.deep.building import torch_settings
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig
from ebql.deep.config.base import AgentConfig
from ebql.deep.config.presets import preset_config
from ebql.deep.fast import dense, sparse
from ebql.deep.training import trainer
from ebql.runs import provenance, write_json

Replaced = list[tuple[Any, str, Any]]

_ONEDNN: Replaced = [(dense, "LARGE", float("inf")), (dense, "MKL_KEEPS_UP", True)]
_MINATAR: dict[str, Replaced] = {
    "set pixels": [(sparse, "applies", lambda *_: False)],
    "compiled actions": [(trainer, "numpy_values", lambda *_, **__: None)],
    "oneDNN": _ONEDNN,
}
_ATARI: dict[str, Replaced] = {"oneDNN": _ONEDNN}
_SOON: dict[str, Any] = {"learning_starts": 500, "replay_size": 10_000, "threads": 1}
NONE = "none of them"


def soon_learning(preset: str, kind: type[AgentConfig]) -> AgentConfig:
    """Return the preset's options for an agent, with a replay that is soon ready to learn from."""
    return preset_config(kind, preset).override(**_SOON)


@dataclass(frozen=True)
class Course:
    """Where the contenders train."""

    environment: str
    """Its id, with a place for the game."""
    game: str
    """If none is named."""
    options: Callable[[type[AgentConfig]], AgentConfig]
    off: dict[str, Replaced]
    """For each part, what to replace, and by what, to do without it."""

    def without(self, parts: set[str]) -> Replaced:
        """Return what to replace to have these parts only."""
        return [one for part, replaced in self.off.items() if part not in parts for one in replaced]


COURSES = {
    "minatar": Course(
        "MinAtar/{}-v1",
        "Breakout",
        lambda kind: kind(**TASKS["MinAtar Breakout, convolution, batch 32"].options),
        _MINATAR,
    ),
    **{
        preset: Course("ALE/{}-v5", "Pong", partial(soon_learning, preset), _ATARI)
        for preset in ("atari-100k", "atari-fast")
    },
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--on", choices=COURSES, default="minatar", help="the options of all contenders")
    parser.add_argument("--game", help="Breakout, Asterix, Pong, …")
    parser.add_argument("--windows", type=int, default=9, help="rounds in which every training has a window")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a window")
    parser.add_argument("--out", type=Path, help="a JSON file to write to")
    options = parser.parse_args()
    course = COURSES[options.on]
    game = options.game or course.game
    configs = {
        "DQN": course.options(DQNConfig),
        "DoubleDQN": course.options(DoubleDQNConfig),
        "EBQL K=5": course.options(EBQLConfig).override(ensemble_size=5),
        "EBQL K=10": course.options(EBQLConfig).override(ensemble_size=10),
    }
    choices = {NONE: set[str](), **{part: {part} for part in course.off}}
    if len(course.off) > 1:
        choices["all of them"] = set(course.off)
    found: dict[str, Any] = {}
    for agent, config in configs.items():
        with torch_settings(config):
            contenders = {
                name: stepping(
                    config, course.environment.format(game), course.without(parts), options.seconds
                )
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
        write_json(options.out, {"made_by": provenance(), "on": options.on, "game": game, "agents": found})


def ratio(ours: float, theirs: float) -> float:
    """Return ours / theirs."""
    return ours / theirs


def stepping(
    config: AgentConfig, environment: str, replaced: Replaced, seconds: float
) -> Callable[[], float]:
    """Return what measures the speed of a training with these replacements."""
    with replacing(replaced):
        run = training(config, environment)

    def advance(steps: int) -> None:
        for _ in range(steps):
            run.advance()

    def window() -> float:
        with replacing(replaced):
            return speed_of(advance, seconds, clock=time.process_time) * config.envs

    return window


@contextmanager
def replacing(replaced: Replaced) -> Iterator[None]:
    """Replace attributes of modules within the context."""
    with ExitStack() as stack:
        for owner, name, plain in replaced:
            stack.enter_context(mock.patch.object(owner, name, plain))
        yield


if __name__ == "__main__":
    main()
