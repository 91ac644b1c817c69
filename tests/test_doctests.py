"""The examples that the site shows of public functions and classes give what they say."""

import doctest
from importlib import import_module
from inspect import getmodule

import pytest

pytest.importorskip("sphinx")

from manual import api

PUBLIC = [f"{module}.{name}" for module, *_ in api.MODULES.values() for name in api.public(module)]
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


@pytest.mark.parametrize("name", [name for name in PUBLIC if examples(name) is not None])
def test_an_example_gives_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples(name), out=told.append)
    assert runner.failures == 0, "".join(told)


def test_the_main_functions_have_examples():
    shown = {name for name in PUBLIC if examples(name) is not None}
    assert {
        "ebql.EBQL",
        "ebql.tabular.learn",
        "ebql.estimators.ensemble",
        "ebql.estimators.winner_of",
    } <= shown
    assert not any("SKIP" in examples(name).docstring for name in shown)
