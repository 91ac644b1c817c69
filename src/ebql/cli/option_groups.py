"""The groups that `ebql train --help` shows its options in.

An agent's config is flat. For the parser, its fields and those of the command itself are put into one nested
dataclass for each group; afterwards they are flat again. Names, types, defaults and help texts do not change.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import field, fields, is_dataclass, make_dataclass
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, NamedTuple

import tyro

from ebql.deep.config.base import AgentConfig, EnsembleConfig

GROUPS: dict[str, str] = {
    "Essentials": "environment agent preset steps learn_from seed out",
    "Network": "torso hidden own_layers activation layer_norm normalise_observations",
    "Learning": "discount n_step reward_scale reward_clip loss optimiser learning_rate "
    "learning_rate_schedule learning_rate_end learning_rate_steps optimiser_eps rmsprop_alpha "
    "rmsprop_momentum max_grad_norm batch_size update_period updates_per_period target_period target_rate",
    "Replay": "replay_size learning_starts compress",
    "Exploration": "epsilon_start epsilon_end epsilon_steps epsilon_schedule epsilon_points exploration "
    "ucb_width action_masks",
    "Ensemble": "ensemble_size split members data mask_probability share_torso torso_gradient prior_scale",
    "Rainbow's parts": "prioritized priority_alpha priority_beta priority_beta_steps dueling noisy "
    "noise_scale atoms v_min v_max quantiles implicit_quantiles target_fractions policy_fractions",
    "Atari": "atari_protocol full_action_space",
    "Run": "evaluation_period evaluation_episodes evaluation_epsilon log_period log_diversity "
    "checkpoint_period envs device threads precision track track_project track_name imports",
}
"""The options in each group, in the order of the help. An agent's own options need no entry (`group_of`)."""

_FIRST = "Essentials"
_COLOUR = r"\x1b\[[0-9;]*m"
_TITLE = re.compile(
    rf"(?P<title>╭(?:{_COLOUR})*─(?:{_COLOUR}| )*(?:[^─╮\n\x1b]|{_COLOUR})*?)"
    rf"(?P<word> ?options)(?P<end>(?:{_COLOUR}| )*)(?P<rule>─+)"
)
_TYPED_TITLE = re.compile(rf"^ (?:(?P<title>{'|'.join(GROUPS)}) )?options *$", flags=re.M)
"""The title of a box where no frame can be drawn."""


class Option(NamedTuple):
    """One option: its name in Python, its type, its default and its help text."""

    name: str
    type: Any
    default: Any
    help: str


def group_of(option: str, agent: type[AgentConfig]) -> str:
    """Return the title of an option's group; the options of a rule need no entry in the table."""
    for title, names in GROUPS.items():
        if option in names.split():
            return title
    return "Ensemble" if issubclass(agent, EnsembleConfig) else "Learning"


def options_of(kind: type, defaults: Mapping[str, Any]) -> list[Option]:
    """Return the fields of a dataclass as options, with these defaults and their docstrings as help."""
    texts = _field_docstrings(kind)
    return [Option(f.name, f.type, defaults[f.name], texts.get(f.name, "")) for f in fields(kind)]


def grouped(options: Sequence[Option], agent: type[AgentConfig]) -> type:
    """Return a dataclass for the parser: the essentials, then one nested dataclass for each other group."""
    by_title: dict[str, list[Option]] = {title: [] for title in GROUPS}
    for option in options:
        by_title[group_of(option.name, agent)].append(option)
    for title, names in GROUPS.items():
        order = names.split()
        by_title[title].sort(
            key=lambda option: order.index(option.name) if option.name in order else len(order)
        )
    groups = []
    for i, (title, own) in enumerate(by_title.items()):
        if title != _FIRST and own:
            group = _dataclass(f"Group{i}", own)
            groups.append((f"group_{i}", Annotated[group, tyro.conf.arg(name=title)], field(default=group())))
    essentials = [_field(option) for option in by_title[_FIRST]]
    return make_dataclass("Essentials", [*essentials, *groups], frozen=True, kw_only=True)


def flattened(parsed: Any) -> dict[str, Any]:
    """Return all options of a parsed, grouped dataclass by name."""
    values: dict[str, Any] = {}
    for f in fields(parsed):
        value = getattr(parsed, f.name)
        values |= flattened(value) if is_dataclass(value) else {f.name: value}
    return values


@contextmanager
def titled_by_group() -> Iterator[None]:
    """Retitle the boxes of help that is printed inside: `Network` instead of tyro's `Network options`."""
    with redirect_stdout(_Retitled(sys.stdout)):
        yield


class _Retitled:
    """A text stream that retitles boxes as they are written; everything else is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        text = _TYPED_TITLE.sub(lambda found: f" {found['title'] or _FIRST}", _TITLE.sub(_retitle, text))
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _retitle(found: re.Match[str]) -> str:
    """Return a box's first line without the word `options`, as wide as before."""
    titled = re.sub(_COLOUR, "", found["title"]).strip("╭─ ")
    title = "" if titled else _FIRST  # tyro calls the first box `options`
    rule = "─" * (len(found["rule"]) + len(found["word"]) - len(title))
    return f"{found['title']}{title}{found['end']}{rule}"


def _dataclass(name: str, options: Sequence[Option]) -> type:
    return make_dataclass(name, [_field(option) for option in options], frozen=True, kw_only=True)


def _field(option: Option) -> tuple[str, Any, Any]:
    kind: Any = option.type
    return option.name, Annotated[kind, tyro.conf.arg(help=option.help)], field(default=option.default)


def _field_docstrings(kind: type) -> dict[str, str]:
    """Return the string below each field of a dataclass and its ancestors; the youngest class wins."""
    texts: dict[str, str] = {}
    for ancestor in reversed(kind.__mro__[:-1]):
        try:
            source = dedent(getsource(ancestor))
        except (OSError, TypeError):  # a class typed into a shell has no source, and so no help
            continue
        for statement in ast.parse(source).body:
            for first, second in pairwise(getattr(statement, "body", ())):
                match first, second:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(text))
                    ):
                        texts[name] = " ".join(cleandoc(text).split())
    return texts
