"""A bootstrap rule of your own: the members' median evaluates what each member selects.

python own_rule.py [STEPS]
ebql train CartPole-v1 --agent median --import own_rule
ebql sweep study.toml --import own_rule            # agents = ["median", "ebql"]
"""

import sys
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

import ebql
from ebql.deep import Agent
from ebql.deep.config import EnsembleConfig
from ebql.deep.targets import Next, Rule, best


def median(after: Next) -> Tensor:
    """Each online member selects (rows, L); the median of all target members evaluates."""
    return after.target.median(1).values.gather(1, best(after, after.online))


@dataclass(frozen=True, kw_only=True)
class MedianConfig(EnsembleConfig):
    """Median Q-learning: a member selects, the median of all members evaluates."""

    name: ClassVar[str] = "median"
    rule: ClassVar[str] = "median"


@ebql.register
class Median(Agent):
    """Median Q-learning."""

    config_type = MedianConfig
    rule = Rule(median, selects_online=True)


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    agent = Median("CartPole-v1", ensemble_size=3, seed=0).learn(steps)
    path = agent.save("median")
    again = Agent.load(path)  # any agent that is registered
    print(f"{type(again).__name__}: mean return {again.evaluate(5, seed=0).mean:.1f}")
