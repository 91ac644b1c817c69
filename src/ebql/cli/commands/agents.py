"""`ebql agents`, `ebql environments` and `ebql evaluate`."""

from pathlib import Path

import tyro
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ebql.catalogue import FAMILY
from ebql.cli.commands.train import agent_types
from ebql.cli.importing import Imports, import_named
from ebql.deep.config.presets import preset_of
from ebql.terminal.console import Console


def agents() -> None:
    """List all agents, deep and tabular: what they bootstrap from, the sign of their bias, their paper."""
    console = Console()
    widths = [2 + max(len(getattr(method, floor)) for method in FAMILY) for floor in ("deep", "tabular")]

    def head(*names: str) -> str:
        return "".join(name.ljust(width) for name, width in zip(names, widths, strict=True))

    console.print(f"[bold]{head('--agent', 'ebql.tabular')}bias[/]", highlight=False)
    for method in FAMILY:
        names = head(method.deep or "—", method.tabular or "—")
        console.print(f"{names}{method.biases}", style="cyan", highlight=False)
        console.print(Padding(Text(method.line), (0, 4)))
        console.print(Padding(Text(method.paper, style="dim"), (0, 4)))


def environments() -> None:
    """List the environments that agents were tried on; other Gymnasium environments may work as well."""
    from ebql.environments import known_environments

    table = Table("environment", "family", "preset", box=None, pad_edge=False)
    for family, names in known_environments().items():
        for name in names:
            table.add_row(name, family, preset_of(name))
    Console().print(table)


def evaluate(
    path: tyro.conf.Positional[Path],
    episodes: int = 20,
    seed: int | None = None,
    environment: str | None = None,
    accept_changes: bool = False,
    imports: Imports = (),
) -> None:
    """Play episodes with a trained agent; print its score and its bias.

    Args:
        path: A run folder, or a saved agent.
        episodes: How many episodes to play.
        seed: The seed of the episodes; by default the run's own.
        environment: Play in this environment: an id, or module:Name for a class or function of your own.
        accept_changes: Continue even though the file was changed by hand.
        imports: Import this module first, which may register environments or agents; can be repeated.
    """
    import_named(imports)
    agent_types()  # says what to install if torch is missing
    from ebql.deep.agent import Agent
    from ebql.environments.modules import environment_named

    played = None if environment is None else environment_named(environment)
    agent = Agent.load(path, environment=played, accept_changes=accept_changes)
    evaluation = agent.evaluate(episodes, seed=seed)
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in evaluation.to_json().items():
        table.add_row(name, _told(value))
    console = Console()
    console.print(table)
    console.print(evaluation.bias.explanation, highlight=False)


def _told(value: float | str | None) -> str:
    if value is None:
        return "—"
    return value if isinstance(value, str) else f"{value:,.4g}"
