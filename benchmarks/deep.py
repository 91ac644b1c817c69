"""The deep agents' speed, beside Stable-Baselines3 in the same process.

Run `python benchmarks/deep.py`. Same network, batch and update ratio, one thread, alternating order,
medians over rounds. Times are CPU times of the process, so that other programs on the machine disturb
less; with one thread and nothing else running they equal the clock's.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3
import torch
import tyro
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from ebql import DQN, EBQL, DoubleDQN
from ebql.environments import make_environment

SIZES = (1, 2, 5, 10, 20)
# Both sides act greedily almost at once, so that every step pays for a forward pass.
SHARED = {"learning_starts": 100, "evaluation_period": 0, "epsilon_steps": 1_000, "epsilon_end": 0.05}


class MinAtarExtractor(BaseFeaturesExtractor):
    """MinAtar's convolution for Stable-Baselines3."""

    def __init__(self, space: gymnasium.spaces.Box) -> None:
        super().__init__(space, 16 * 8 * 8)
        self.convolution = torch.nn.Conv2d(space.shape[2], 16, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return features (rows, 1024) of images (rows, 10, 10, C)."""
        return torch.relu(self.convolution(images.permute(0, 3, 1, 2))).flatten(1)


@dataclass
class Options:
    """How long to measure."""

    steps: int = 4_000
    """Agent steps of one window."""
    updates: int = 150
    """Updates of one window."""
    rounds: int = 5
    """Windows; the median counts."""


def seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def alternate(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return each work's median time; the order turns by one each round."""
    times: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            times[name].append(seconds(works[name]))
    return {name: statistics.median(own) for name, own in times.items()}


def stable(environment: gymnasium.Env[Any, Any], policy: dict[str, Any]) -> stable_baselines3.DQN:
    return stable_baselines3.DQN(
        "MlpPolicy",
        environment,
        policy_kwargs=policy,
        batch_size=32,
        train_freq=4,
        gradient_steps=1,
        learning_starts=100,
        buffer_size=50_000,
        target_update_interval=1_000,
        exploration_fraction=1e-3,
        exploration_final_eps=0.05,
        device="cpu",
    )


def side_by_side(title: str, ours: dict[str, Any], theirs: stable_baselines3.DQN, options: Options) -> None:
    works: dict[str, Callable[[], object]] = {
        "Stable-Baselines3 DQN": lambda: theirs.learn(options.steps, reset_num_timesteps=False)
    }
    for name, agent in ours.items():
        works[name] = lambda agent=agent: agent.learn(options.steps)
    for agent in (*ours.values(), theirs):
        agent.learn(1_500)
    times = alternate(works, options.rounds)
    print(f"\n{title}: agent steps a second, one update per 4 steps, batch 32")
    reference = times["Stable-Baselines3 DQN"]
    for name, taken in times.items():
        print(f"  {name:24s}{options.steps / taken:9,.0f}   {reference / taken:5.2f} ×")


def growth(options: Options) -> None:
    """How an update's time grows with K on MinAtar."""
    minatar = "MinAtar/Breakout-v1"
    agents: dict[str, Any] = {"DQN": DQN(minatar, **SHARED), "DoubleDQN": DoubleDQN(minatar, **SHARED)}
    for own_layers in (1, 0):
        for size in SIZES[1:]:
            name = f"EBQL K={size}, {own_layers} own hidden layer{'s' * (own_layers != 1)}"
            agents[name] = EBQL(minatar, ensemble_size=size, own_layers=own_layers, **SHARED)
    works: dict[str, Callable[[], object]] = {}
    for name, agent in agents.items():
        agent.learn(300)
        works[name] = lambda agent=agent: [
            agent._learner.update(agent._training.replay.sample(32, np.random.default_rng(0)))
            for _ in range(options.updates)
        ]
    times = alternate(works, options.rounds)
    print("\nMinAtar Breakout: one update")
    for name, taken in times.items():
        ratio = taken / times["DoubleDQN"]
        print(f"  {name:32s}{1e3 * taken / options.updates:7.2f} ms   {ratio:5.2f} × DoubleDQN")


def breakdown(title: str, agent: Any, options: Options) -> None:
    """Where the time goes."""
    agent.learn(1_500)
    training = agent._training
    spent: dict[str, float] = {}

    def timed(owner: Any, method: str, part: str) -> None:
        plain = getattr(owner, method)

        def wrapped(*arguments: Any) -> Any:
            begin = time.process_time()
            result = plain(*arguments)
            spent[part] = spent.get(part, 0.0) + time.process_time() - begin
            return result

        object.__setattr__(owner, method, wrapped)

    timed(training.lanes, "step", "environment")
    timed(training, "_act", "acting")
    timed(training.replay, "add", "replay")
    timed(training.replay, "sample", "replay")
    timed(training.learner, "update", "update")
    total = seconds(lambda: agent.learn(options.steps))
    parts = "  ".join(f"{part} {100 * taken / total:.0f}%" for part, taken in spent.items())
    print(f"  {title:24s}{parts}  the rest {100 * (1 - sum(spent.values()) / total):.0f}%")


def main(options: Options) -> None:
    torch.set_num_threads(1)
    plain = {"preset": "plain", "hidden": (64, 64), **SHARED}
    kinds = {"DQN": DQN, "DoubleDQN": DoubleDQN, "EBQL K=5": EBQL}
    cartpole = {name: kind("CartPole-v1", **plain) for name, kind in kinds.items()}
    side_by_side(
        "CartPole, MLP 64-64",
        cartpole,
        stable(gymnasium.make("CartPole-v1"), {"net_arch": [64, 64]}),
        options,
    )
    minatar = {name: kind("MinAtar/Breakout-v1", **SHARED) for name, kind in kinds.items()}
    policy = {"net_arch": [128], "features_extractor_class": MinAtarExtractor}
    theirs = stable(make_environment("MinAtar/Breakout-v1"), policy)
    side_by_side("MinAtar Breakout, conv 16 and dense 128", minatar, theirs, options)
    growth(options)
    print("\nWhere the time goes")
    for name, agent in cartpole.items():
        breakdown(f"CartPole {name}", agent, options)
    for name, agent in minatar.items():
        breakdown(f"MinAtar {name}", agent, options)


if __name__ == "__main__":
    main(tyro.cli(Options))
