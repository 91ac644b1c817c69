import sys

import gymnasium
import pytest

from ebql.environments import make_discrete, make_environment, make_lanes
from ebql.environments.modules import import_modules, module_of, require_imported
from ebql.environments.sources import given

SOURCE = """
import gymnasium
from ebql.environments.exact.probes import ProbeEnv
gymnasium.register("OwnProbe-v0", lambda **_: ProbeEnv("OneStep"))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return the id of an environment whose module is a file in the current folder, not imported so far."""
    (tmp_path / "own_module.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield "own_module:OwnProbe-v0"
    sys.modules.pop("own_module", None)
    gymnasium.registry.pop("OwnProbe-v0", None)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("m:Thing-v0", "m"),
        ("a.b:space/Thing-v0", "a.b"),
        ("CartPole-v1", None),
        ("../m:Thing-v0", None),
        ("a b:Thing-v0", None),
        (":Thing-v0", None),
    ],
)
def test_the_module_of_an_id(name, module):
    assert module_of(name) == module


@pytest.mark.parametrize("make", [make_environment, make_lanes, require_imported])
def test_an_id_imports_nothing_until_the_user_names_the_module(own, make):
    with pytest.raises(ValueError, match=r"run the code of the module 'own_module'.*add --import own_module"):
        make(own)
    assert "own_module" not in sys.modules
    import_modules(["own_module"])
    make(own)


def test_an_id_that_the_user_passes_is_the_users_own_word(own):
    assert given(own) == own
    make_environment(own).close()


def test_tables_take_the_users_own_id(own):
    with pytest.raises(TypeError, match="needs Discrete observations"):  # the module was imported before
        make_discrete(own)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_such_module", "Cannot import the module 'no_such_module': No module named 'no_such_module'"),
        ("own_module.py", "Cannot import the module 'own_module.py': No module named"),
        ("own-module", "'own-module' is not the name of a module"),
        ("broken", "Cannot import the module 'broken': oh no"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line(own, tmp_path, name, told):
    (tmp_path / "broken.py").write_text("raise RuntimeError('oh\\nno')")
    with pytest.raises(ValueError, match=told.replace(".", r"\.")):
        import_modules([name])
