"""The generated pages name everything that the code has."""

import re
from dataclasses import fields, is_dataclass
from inspect import isclass

import pytest

from ebql.cli.main import COMMANDS
from ebql.deep.config import CONFIGS, PRESETS
from ebql.runs import metric_names

pytest.importorskip("sphinx")

from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer

from manual import api, commands, metrics, options


def cells(page, column):
    return [row.split(" | ")[column].strip("| `") for row in page.splitlines() if row.startswith("| ")]


def test_every_command_has_its_help():
    page = commands.page()
    assert re.findall(r"^## (.*)$", page, flags=re.M) == list(COMMANDS)
    assert "--control" in page
    assert "\x1b" not in page


def test_every_option_has_its_default():
    page = options.page()
    named = set(cells(page, 0)) | set(cells(page, 1))
    for kind in CONFIGS.values():
        assert {f.name for f in fields(kind)} <= named
    assert "| `replay_size` | `int` | `50_000` | Transitions kept in the replay buffer. |" in page
    assert all(f"`{name}`" in page for name in PRESETS)


def test_every_metric_is_explained():
    page = metrics.page()
    named = {name for name in vars(metric_names) if name.isupper() and not name.endswith("_PREFIX")}
    for name in named:
        assert f"| `{getattr(metric_names, name)}` | " in page, name
    assert "|  |" not in page


def test_examples_are_shown_as_they_run():
    lines = ["Weigh `a` by 2*b.", "", ">>> weigh(", "...     `a`, 2*b)", "'2*b_'", "", "So 2*b it is."]
    api.as_restructured_text(None, "function", "weigh", None, None, lines)
    assert lines == [
        "Weigh ``a`` by 2\\*b.",
        "",
        ">>> weigh(",
        "...     `a`, 2*b)",
        "'2*b_'",
        "",
        "So 2\\*b it is.",
    ]


def test_an_agents_methods_do_not_get_the_example_of_an_agent():
    assert "import EBQL, learn" in api.example(api.named("ebql.tabular", "EBQL"))
    assert api.example(api.named("ebql.tabular", "Agent").first_tables) == ""


def test_the_words_before_a_colon_are_not_a_type():
    lines = ["Frames after which a game is truncated: half an hour of play."]
    api.as_plain_text(None, "attribute", "most_frames", 108_000, None, lines)
    parsed = GoogleDocstring(lines, Config(), what="attribute", name="most_frames").lines()
    api.as_restructured_text(None, "attribute", "most_frames", 108_000, None, parsed)
    assert [line for line in parsed if line] == [
        "Frames after which a game is truncated: half an hour of play."
    ]


def test_signatures_are_short():
    given = "(rule: ~collections.abc.Callable[[...], ~torch.Tensor] = <function Rule.<lambda>>, n: int = 1)"
    signature, _ = api.readable_signature(None, "class", "Rule", None, None, given, None)
    assert signature == "(rule: Callable[[...], Tensor] = ..., n: int = 1)"


def unexplained(record):
    """Return the fields of a dataclass or named tuple that have neither a docstring nor a line in `Args`."""
    names = [f.name for f in fields(record)] if is_dataclass(record) else getattr(record, "_fields", ())
    documented = ModuleAnalyzer.for_module(record.__module__).find_attr_docs()
    arguments = record.__doc__.partition("Args:")[2]
    return [n for n in names if (record.__name__, n) not in documented and f"{n}:" not in arguments]


def test_every_field_of_a_public_class_is_explained():
    public = [api.named(module, name) for module, *_ in api.MODULES.values() for name in api.public(module)]
    classes = [thing for thing in public if isclass(thing)]
    assert {thing.__name__: unexplained(thing) for thing in classes if unexplained(thing)} == {}


def test_every_public_name_has_a_description():
    pages = api.pages()
    assert "ebql.estimators.ensemble\n" in pages["estimators"]
    assert "ebql.EBQL\n" in pages["agents"]
    assert "ebql.EBQL" not in pages["deep"]
    for module, *_ in api.MODULES.values():
        for name in api.public(module):
            assert api.named(module, name).__doc__, (module, name)
