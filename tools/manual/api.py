"""The reference of Python: a page for each public module with all that it exports."""

import re
from importlib import import_module
from inspect import isclass, isfunction
from typing import Any

from ebql.deep import Agent

MODULES = {
    "agents": (
        "ebql",
        "Deep agents",
        "`from ebql import EBQL`. All agents have the methods of [`Agent`](api-deep.md). They differ in "
        "their bootstrap rule ([equations](../algorithms.md)) and in their [options](options.md).",
    ),
    "deep": (
        "ebql.deep",
        "Agent and callbacks",
        "What all deep agents can do, and what can watch them while they learn.",
    ),
    "rules": (
        "ebql.deep.targets",
        "Bootstrap rules",
        "What a rule of your own needs ([how to](../extending.md#an-agent-and-a-rule-of-your-own)).",
    ),
    "evaluation": (
        "ebql.deep.evaluation",
        "Evaluations and the bias",
        "What `evaluate` and `measure_bias` return.",
    ),
    "tabular": (
        "ebql.tabular",
        "Tables",
        "Any number of seeds at once, on an exact MDP or a Gymnasium environment with finite spaces.",
    ),
    "estimators": (
        "ebql.estimators",
        "Estimators",
        "Estimators of the largest of several means, with exact bias and variance. m is the number of arms, "
        "N the number of samples of each, K the number of members.",
    ),
    "sb3": (
        "ebql.sb3",
        "Stable-Baselines3",
        "EBQL as one of its algorithms, and the bias of its models ([how to](../neighbours.md)).",
    ),
    "environments": (
        "ebql.environments",
        "Environments",
        "MDPs with known values ([worlds](../worlds.md)), and how environments are made and stepped.",
    ),
    "runs": ("ebql.runs", "Run folders", "Reading and writing runs ([formats](../reference/files.md))."),
    "errors": (
        "ebql.errors",
        "Errors",
        "Errors that the user can fix. All are `ValueError`, `TypeError`, `OSError` or `RuntimeError`, too.",
    ),
}
"""The pages: the module, the title and an introduction."""

_EXTRA = {
    "ebql.deep.targets": ("Next", "Rule", "best", "worst"),
    "ebql.deep.evaluation": ("evaluation.Evaluation", "bias.Bias"),
    "ebql.errors": ("UserError", "InputError", "InputTypeError", "OutputError", "RunError", "Interrupted"),
}
"""The public names of modules without `__all__`."""


_DEEP_EXAMPLE = """>>> from ebql import {name}
>>> agent = {name}("CartPole-v1", seed=0)
>>> agent.together(agent.q_values([0.0, 0.0, 0.0, 0.0])).shape  # of both actions
(2,)
"""
_TABULAR_EXAMPLE = """>>> from ebql.environments import bandit
>>> from ebql.tabular import {name}, learn
>>> learn(bandit([0.0, 1.0]), {name}(), episodes=10).returns.shape
(1, 10)
"""

_COLON = "\ue000"
_WORD = r"~?(?:\w+\.)*"
_ARRAY_LIKE = re.compile(
    rf"{_WORD}_?Buffer \| {_WORD}_SupportsArray\[[^|]*\] \| {_WORD}_NestedSequence\[[^|]*\] "
    rf"\| complex \| bytes \| str \| {_WORD}_NestedSequence\[complex \| bytes \| str\]"
)
_ARRAY = re.compile(rf"{_WORD}ndarray\[tuple\[{_WORD}Any, \.\.\.\], {_WORD}dtype\[{_WORD}(\w+)\]\]")


def pages() -> dict[str, str]:
    """Return the text of each page."""
    return {page: _page(*about) for page, about in MODULES.items()}


def public(module: str) -> list[str]:
    """Return the public names of a module, dotted below the module: classes and functions."""
    loaded = import_module(module)
    elsewhere = import_module("ebql").__all__ if module == "ebql.deep" else ()
    names = _EXTRA.get(module) or [name for name in loaded.__all__ if name not in elsewhere]
    kinds = {name: named(module, name) for name in names}
    found = [name for name, thing in kinds.items() if isclass(thing) or isfunction(thing)]
    return sorted(found, key=lambda name: (not isclass(kinds[name]), name.lower()))


def named(module: str, name: str) -> Any:
    """Return what `module.name` is, where the name may be dotted."""
    where, _, last = f"{module}.{name}".rpartition(".")
    return getattr(import_module(where), last)


def _page(module: str, title: str, introduction: str) -> str:
    parts = [f"# {title}\n\n{introduction}\n"]
    for name in public(module):
        thing = named(module, name)
        if isclass(thing):
            agent = module == "ebql"  # the methods of agents are on the page of their base class
            members = "" if agent else "   :members:\n"
            parts.append(_directive("autoclass", f"{module}.{name}", members))
        else:
            parts.append(_directive("autofunction", f"{module}.{name}", ""))
    return "\n".join(parts)


def _directive(kind: str, name: str, options: str) -> str:
    return f"```{{eval-rst}}\n.. {kind}:: {name}\n{options}```\n"


def example(thing: Any) -> str:
    """Return an example of an agent that has none in its docstring; the agents of a kind are used alike."""
    name = getattr(thing, "__name__", "")
    if isclass(thing) and issubclass(thing, Agent) and thing is not Agent:
        return _DEEP_EXAMPLE.format(name=name)
    if isfunction(thing) and thing.__module__ == "ebql.tabular.agents" and thing.__qualname__ == name:
        return _TABULAR_EXAMPLE.format(name=name)
    return ""


def as_plain_text(_app: Any, what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Hide colons from napoleon, which takes what is before one for the type of an attribute.

    `as_restructured_text` shows them again.
    """
    if what in ("attribute", "data", "property"):
        lines[:] = [line.replace(":", _COLON) for line in lines]


def as_restructured_text(
    _app: Any, _what: str, _name: str, thing: Any, _options: Any, lines: list[str]
) -> None:
    """Turn a docstring of ours into reStructuredText: `code` is code, and |, * and a last _ are text.

    Examples, from `>>>` to an empty line, stay as they are.
    """
    if not any(line.lstrip().startswith(">>>") for line in lines):
        lines.extend(["", *example(thing).splitlines(), ""])
    lines[:] = [line.replace(_COLON, ":") for line in lines]
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if in_example:
            continue
        parts = re.split(r"(`[^`]*`)", line)
        lines[i] = "".join(
            part.replace("`", "``") if j % 2 else re.sub(r"(?<!\\)([|*]|_\b)", r"\\\1", part)
            for j, part in enumerate(parts)
        )


def readable_signature(
    _app: Any, _what: str, _name: str, thing: Any, _options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Shorten the signature of an agent, whose options have a page, and the types that NumPy spells out."""
    if isclass(thing) and issubclass(thing, Agent):
        return "(environment, *, preset=None, config=None, **options)", returns
    return _short_types(signature), _short_types(returns)


def _short_types(text: str | None) -> str | None:
    """Write NumPy's types by the names that the code has for them, and others without their modules."""
    if text is None:
        return None
    text = re.sub(r"<function \S*<lambda>>", "...", text)
    text = _ARRAY_LIKE.sub("ArrayLike", text)
    return re.sub(r"~(?:\w+\.)*", "", _ARRAY.sub(r"NDArray[\1]", text))
