"""The page of all options: their defaults, and what each preset and each agent makes of them."""

from dataclasses import fields
from typing import Any, Literal, get_args, get_origin

from ebql.cli.option_groups import GROUPS, Option, group_of, options_of
from ebql.deep.config import CONFIGS, PRESETS, AgentConfig, EBQLConfig
from ebql.deep.config.presets import FAMILIES
from manual.tables import table

_INTRODUCTION = """# Options

An option is a keyword in Python (`EBQL("CartPole-v1", n_step=3)`), an option on the command line
(`--n-step 3`) and a key in a study (`n_step = 3`). `ebql train ENV --agent NAME --help` shows the options of
one agent with the defaults of the preset that applies.
"""
_PRESETS = """## Presets

A preset replaces defaults. By default the environment's id chooses it; `--preset` or `preset=` names another
one. The tables show what each preset sets. Everything else has the default above, and `plain` sets nothing.
"""
_AGENTS = """## What agents add or change

Options that one agent has of its own, and those whose default it changes.
"""


def page() -> str:
    """Return the page of all options."""
    return "\n".join([_INTRODUCTION, *_groups(), _PRESETS, *_presets(), _AGENTS, _agents(), ""])


def _groups() -> list[str]:
    """Return a section for each group of the options that EBQL, the agent with most of them, has."""
    options = _options(EBQLConfig)
    sections = []
    for title, names in GROUPS.items():
        own = [option for option in options.values() if group_of(option.name, EBQLConfig) == title]
        own.sort(key=lambda option: names.split().index(option.name))
        if own:
            rows = [[f"`{o.name}`", _kind(o.type), f"`{shown(o.default)}`", o.help] for o in own]
            sections.append(f"## {title}\n\n{table(['option', 'type', 'default', 'meaning'], rows)}\n")
    return sections


def _presets() -> list[str]:
    families = [[f"`{prefix}…`", f"`{preset}`"] for prefix, preset in FAMILIES.items()]
    sections = [table(["an environment whose id starts with", "has the preset"], families) + "\n"]
    for title, names in (
        ("Classic control and MinAtar", [name for name in PRESETS if not name.startswith("atari")]),
        ("Atari", [name for name in PRESETS if name.startswith("atari")]),
    ):
        chosen = {name: PRESETS[name] for name in names if PRESETS[name]}
        given = [f.name for f in fields(AgentConfig) if any(f.name in values for values in chosen.values())]
        rows = [
            [
                f"`{name}`",
                *(f"`{shown(values[name])}`" if name in values else "" for values in chosen.values()),
            ]
            for name in given
        ]
        sections.append(f"### {title}\n\n{table(['option', *(f'`{name}`' for name in chosen)], rows)}\n")
    return sections


def _agents() -> str:
    """Return the options in which an agent differs from EBQL, the agent of the tables above."""
    shared, rows = _options(EBQLConfig), []
    for name, kind in CONFIGS.items():
        for option in _options(kind).values():
            known = shared.get(option.name)
            if known is None or known.default != option.default:
                rows.append([f"`{name}`", f"`{option.name}`", f"`{shown(option.default)}`", option.help])
    return table(["agent", "option", "default", "meaning"], rows)


def _options(kind: type[AgentConfig]) -> dict[str, Option]:
    defaults = {f.name: f.default for f in fields(kind)}
    return {option.name: option for option in options_of(kind, defaults)}


def _kind(kind: Any) -> str:
    """Return a type as a user knows it: the choices of a `Literal`, or the name of the type."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    text = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    return f"`{text.replace('typing.', '')}`"


def shown(value: Any) -> str:
    """Return a default as one writes it: `1_000_000`, `(64, 64)`, `None`."""
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
