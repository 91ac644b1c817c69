"""The generated pages name everything that the code has."""

import re
from dataclasses import fields

import pytest

from ebql.cli.main import COMMANDS
from ebql.deep.config import CONFIGS, PRESETS
from ebql.runs import metric_names

pytest.importorskip("sphinx")

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


def test_every_public_name_has_a_description():
    pages = api.pages()
    assert "ebql.estimators.ensemble\n" in pages["estimators"]
    assert "ebql.EBQL\n" in pages["agents"]
    assert "ebql.EBQL" not in pages["deep"]
    for module, *_ in api.MODULES.values():
        for name in api.public(module):
            assert api.named(module, name).__doc__, (module, name)
