"""The examples that the site shows of public functions and classes give what they say."""

import doctest
from importlib import import_module
from inspect import getmodule

import pytest

pytest.importorskip("sphinx")

from ebql.deep.agents import AGENTS
from ebql.deep.config import CONFIGS
from ebql.deep.targets import RULES
from manual import api

PUBLIC = [f"{module}.{name}" for module, *_ in api.MODULES.values() for name in api.public(module)]
# An accident cannot be shown in a line or two: a disk that fails, a damaged file, a signal, another machine.
# Nobody calls these names: one catches or filters them.
WITHOUT = [
    "ebql.errors.Interrupted",
    "ebql.errors.RunError",
    "ebql.runs.CheckpointError",
    "ebql.runs.DamagedCheckpointWarning",
    "ebql.runs.DamagedLogWarning",
    "ebql.runs.LostLogError",
    "ebql.runs.OtherVersionsWarning",
]
FINDER = doctest.DocTestFinder(recurse=False)


def examples(name):
    """Return the example that the site shows for a public name, from its docstring or its kind, or None."""
    thing = api.named(*name.rsplit(".", 1))
    globs = dict(vars(import_module(getmodule(thing).__name__)))
    found = FINDER.find(thing, name, module=False, globs=globs)
    written = next((test for test in found if test.examples), None)
    if written is None and api.example(thing):
        return doctest.DocTestParser().get_doctest(api.example(thing), globs, name, None, 0)
    return written


@pytest.fixture
def registries():
    """Agents and rules that an example registers are forgotten after it."""
    tables = (RULES, CONFIGS, AGENTS)
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)


@pytest.mark.parametrize("name", [name for name in PUBLIC if examples(name) is not None])
@pytest.mark.usefixtures("registries")
def test_an_example_gives_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples(name), out=told.append)
    assert runner.failures == 0, "".join(told)


def test_every_public_name_has_an_example():
    shown = {name for name in PUBLIC if examples(name) is not None}
    assert sorted(set(PUBLIC) - shown) == sorted(WITHOUT)
    assert not any("SKIP" in examples(name).docstring for name in shown)
