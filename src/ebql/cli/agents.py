"""`ebql agents`, `ebql environments` and `ebql evaluate`."""

from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from ebql.cli.train import agent_types
from ebql.deep.family import CONFIGS
from ebql.deep.presets import preset_of


def agents() -> None:
    """List the agents, each with what it bootstraps from, the sign of its bias and its paper."""
    table = Table("agent", "bias", "what it does", "paper", box=None, pad_edge=False)
    for name, config in CONFIGS.items():
        table.add_row(name, config.bias, config.__doc__, config.paper)
    Console().print(table)
    Console().print("bias: + overestimates, − underestimates, ± depends on the number of members")


def environments() -> None:
    """List the environments the agents are tried on; any other of Gymnasium's may work as well."""
    from ebql.environments import known_environments

    table = Table("environment", "family", "preset", box=None, pad_edge=False)
    for family, names in known_environments().items():
        for name in names:
            table.add_row(name, family, preset_of(name))
    Console().print(table)


def evaluate(path: tyro.conf.Positional[Path], episodes: int = 20, seed: int | None = None) -> None:
    """Play episodes with a trained agent, and compare what it expects with what it earns.

    Args:
        path: a run's folder, or a saved agent.
        episodes: how many episodes to play.
        seed: settles the episodes; by default the run's own.
    """
    agent_types()  # or a word about the missing extra
    from ebql.deep.agent import Agent

    evaluation = Agent.load(path).evaluate(episodes, seed=seed)
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in evaluation.to_json().items():
        table.add_row(name, "—" if value is None else f"{value:,.4g}")
    Console().print(table)
